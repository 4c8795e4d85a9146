import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { CommandInput, CommandOutput, CommandResult, DeployCommand } from "#deployments/command.ts";
import { programFile } from "../choice.ts";

interface Parts {
  /** Where the platform is installed. */
  installed: string;
  /** An empty folder to run in: an app file in the working directory would be deployed. */
  cwd: string;
  /** The platform's own address. */
  url(): string;
}

/** The `hangar` command as a child process, without anything of our environment. */
export class ChildDeployCommand implements DeployCommand {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async run({ words, token, onLine, signal }: CommandInput): Promise<CommandResult> {
    const { installed, cwd, url } = this.#parts;
    mkdirSync(cwd, { recursive: true, mode: 0o700 });
    const [program, ...before] = [...withPlatform(), process.execPath, "--max-old-space-size=256"];
    const child = spawn(program, [...before, join(installed, "bin/hangar.mjs"), ...words, "--json"], {
      cwd,
      env: {
        PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
        HANGAR_URL: url(),
        HANGAR_TOKEN: token,
        HANGAR_DATA_DIR: cwd,
        NO_COLOR: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
      signal,
      killSignal: "SIGKILL",
    });
    const ended = once(child, "close") as Promise<[number | null]>;
    const lines = createInterface({ input: child.stderr, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on("line", onLine);
    try {
      const [[code], printed] = await Promise.all([ended, text(child.stdout)]);
      return { ok: code === 0, result: resultOf(printed, code) };
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      return { ok: false, result: { error: "the deployment was ended before it was complete" } };
    }
  }
}

/** The kernel ends the command with the platform, where util-linux is. */
function withPlatform(): string[] {
  const setpriv = process.platform === "linux" ? programFile("setpriv") : undefined;
  return setpriv ? [setpriv, "--pdeathsig", "KILL"] : [];
}

function resultOf(printed: string, code: number | null): CommandOutput {
  try {
    return JSON.parse(printed) as CommandOutput;
  } catch {
    return { error: `the deployment ended with exit code ${code}` };
  }
}
