/**
 * The emulator as a program, for tests in any language.
 *
 *   main.ts [options]                 runs until it is interrupted
 *   main.ts [options] -- COMMAND …    runs the command with the emulator's address and token, and ends with it
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { VERSION } from "#core/version.ts";
import { openControl } from "./control.ts";
import { type Emulator, startPlatform } from "./emulator.ts";

const OPTIONS = {
  listen: { type: "string", default: "127.0.0.1:4280" },
  control: { type: "string", default: "127.0.0.1:0" },
  config: { type: "string" },
  state: { type: "string" },
  time: { type: "string" },
  frozen: { type: "boolean", default: false },
  metrics: { type: "boolean", default: false },
} as const;

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
  const { frozen, metrics, config, state, time } = values;
  await using emulator = await startPlatform({
    ...address(values.listen),
    frozen,
    metrics,
    ...(config ? { config: readFileSync(config, "utf8") } : {}),
    ...(state ? { state: readFileSync(state) } : {}),
    ...(time ? { time: moment(time) } : {}),
  });
  const control = await openControl(emulator, address(values.control));
  try {
    const env = { HANGAR_URL: emulator.base_url, HANGAR_TOKEN: emulator.token, HANGAR_EMULATOR_URL: control.url };
    return positionals.length > 0 ? await runCommand(positionals, env) : await wait(emulator, env);
  } finally {
    control.close();
  }
}

/** The command's own output is all there is; its end is ours. */
async function runCommand([command = "", ...args]: readonly string[], env: Record<string, string>): Promise<number> {
  const child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on("SIGINT", pass).on("SIGTERM", pass);
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}

async function wait({ base_url }: Emulator, env: Record<string, string>): Promise<number> {
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${value}`);
  process.stdout.write(
    `Hangar ${VERSION}, the emulator, at ${base_url}. All data is in memory, and lost at exit.\n${lines.join("\n")}\n`,
  );
  // Timers of the platform hold no process, and neither need its connections.
  const awake = setInterval(() => {}, 60_000);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  clearInterval(awake);
  return 0;
}

function address(text: string): { host: string; port: number } {
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (!host) throw new TypeError(`${text} is not host:port`);
  return { host, port: Number(port) };
}

function moment(text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new TypeError(`${text} is not a time such as 2030-01-01T00:00:00Z`);
  return time;
}

try {
  process.exitCode = await run();
} catch (thrown) {
  process.stderr.write(`hangar: ${messageOf(thrown)}\n`);
  process.exitCode = 1;
}
