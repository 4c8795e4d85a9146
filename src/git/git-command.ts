import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { APP_DIR, type ConfinedProgram, type Confinement } from "./confinement.ts";
import type { GitLimits } from "./limits.ts";

/** Git failed; the message is its own. */
export class GitFailed extends Error {
  override readonly name = "GitFailed";
}

export const REPOSITORY = `${APP_DIR}/repo.git`;
export const HOOKS = `${APP_DIR}/hooks`;

/** No file of the host, the user or a repository configures Git: this does. */
const SETTINGS: Record<string, string> = {
  "core.hooksPath": HOOKS,
  "core.fsmonitor": "false",
  "core.bigFileThreshold": "16m",
  "core.packedGitLimit": "256m",
  "pack.threads": "1",
  "pack.windowMemory": "64m",
  "transfer.fsckObjects": "true",
  "receive.fsckObjects": "true",
  "fetch.fsckObjects": "true",
  // Objects stay packed: a small pack of many objects cannot fill the disk.
  "receive.unpackLimit": "1",
  "fetch.unpackLimit": "1",
  "receive.autogc": "false",
  "gc.auto": "0",
  "receive.denyDeleteCurrent": "refuse",
  "receive.keepAlive": "5",
  "safe.directory": "*",
};

const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
};

type GitProgram = Omit<ConfinedProgram, "program">;

/** A confined Git with the platform's settings, and `settings` beside them. */
export function startGit(
  confinement: Confinement,
  { args, env, ...rest }: GitProgram,
  settings: Record<string, string> = {},
): ChildProcess {
  const flags = Object.entries({ ...SETTINGS, ...settings }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return confinement.spawn({ ...rest, program: "git", args: [...flags, ...args], env: { ...ENVIRONMENT, ...env } });
}

interface GitRun extends Omit<GitProgram, "signal"> {
  limits: GitLimits;
  signal?: AbortSignal;
  settings?: Record<string, string>;
  /** What separates records of the output. */
  separator?: "\n" | "\0";
}

/** Runs Git to its end and calls `onRecord` for each record of its output; what that throws ends Git. */
export async function runGit(
  confinement: Confinement,
  { limits, signal, settings, separator = "\n", ...program }: GitRun,
  onRecord: (record: string) => void = () => {},
): Promise<void> {
  const stop = new AbortController();
  const late = AbortSignal.timeout(limits.git_step_ms);
  const child = startGit(
    confinement,
    { ...program, signal: AbortSignal.any([stop.signal, late, ...(signal ? [signal] : [])]) },
    settings,
  );
  child.stdin?.end();
  const problem = collected(child.stderr);
  const ended = once(child, "close") as Promise<[number | null]>;
  ended.catch(() => {});
  try {
    for await (const record of records(child.stdout as Readable, separator)) onRecord(record);
    const [code] = await ended;
    if (code !== 0) throw new GitFailed((await problem) || `git ${program.args[0] ?? ""} ended with code ${code}`);
  } catch (thrown) {
    if (late.aborted) throw new GitFailed(`it took longer than ${limits.git_step_ms / 1000} s (limit git_step_ms)`);
    throw thrown;
  } finally {
    stop.abort();
    await ended.catch(() => {});
  }
}

async function* records(source: Readable, separator: "\n" | "\0"): AsyncGenerator<string> {
  if (separator === "\n") return yield* createInterface({ input: source, crlfDelay: Number.POSITIVE_INFINITY });
  let rest = "";
  for await (const piece of source.setEncoding("utf8")) {
    const found = (rest + String(piece)).split(separator);
    rest = found.pop() ?? "";
    yield* found;
  }
}

const KEPT_CHARS = 2000;

/** The beginning of what a program says on a stream, which is read to its end. */
export async function collected(stream: Readable | null): Promise<string> {
  let text = "";
  if (stream) for await (const piece of stream.setEncoding("utf8")) if (text.length < KEPT_CHARS) text += String(piece);
  return text.trim().slice(0, KEPT_CHARS);
}
