/** What a command is started with, as the query of a request or the arguments of a control message. */
import { parseDuration } from "#core/durations.ts";
import { fail, type Problem } from "#core/errors.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { SPRITE_LIMITS } from "../limits.ts";

export interface ExecInput {
  command: readonly string[];
  env: Record<string, string>;
  folder?: string;
  tty: boolean;
  rows: number;
  cols: number;
  /** Whether input comes; without it the command reads an end at once. */
  stdin: boolean;
  /** How long it may run without a client; undefined for as long as it likes. */
  run_after_disconnect_ms: number | undefined;
}

/** As it was sent: numbers and flags may be texts. */
export interface GivenExec {
  cmd?: unknown;
  path?: unknown;
  env?: unknown;
  dir?: unknown;
  tty?: unknown;
  rows?: unknown;
  cols?: unknown;
  stdin?: unknown;
  detachable?: unknown;
  max_run_after_disconnect?: unknown;
}

/** Prefers bash if it exists. */
const SHELL = ["sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

const isOn = (value: unknown): boolean => value === true || value === "true" || value === "1";
const listOf = (value: unknown): unknown[] => (value === undefined ? [] : [value].flat());

/** Fails with every problem there is. */
export function execInput(given: GivenExec): ExecInput {
  const problems: Problem[] = [];
  const { command_words, command_word_chars } = SPRITE_LIMITS;
  const texts = (name: "cmd" | "env"): string[] => {
    const all = listOf(given[name]);
    if (all.length > command_words)
      problems.push({ path: name, problem: `has more than ${command_words} values (limit command_words)` });
    return all.flatMap((value) => textOf(name, value) ?? []);
  };
  const textOf = (path: string, value: unknown): string | undefined => {
    if (value === undefined) return undefined;
    if (typeof value === "string" && value.length <= command_word_chars && !value.includes("\0")) return value;
    const allowed = `text of at most ${command_word_chars} characters (limit command_word_chars) without NUL`;
    problems.push({ path, problem: "is not such a text", allowed });
    return undefined;
  };
  const side = (name: "rows" | "cols", fallback: number): number => {
    const value = Number(given[name] ?? fallback);
    if (isSide(value)) return value;
    problems.push({ path: name, problem: `is 1 to ${MACHINE_LIMITS.terminal_side}` });
    return fallback;
  };
  const path = textOf("path", given.path);
  const words = texts("cmd");
  const folder = textOf("dir", given.dir);
  if (folder && !folder.startsWith("/"))
    problems.push({ path: "dir", problem: "is not absolute", allowed: "a path that begins with /" });
  const tty = isOn(given.tty);
  const input: ExecInput = {
    command: commandOf(words, path),
    env: variablesOf(texts("env"), problems),
    tty,
    rows: side("rows", DEFAULT_SIZE.rows),
    cols: side("cols", DEFAULT_SIZE.cols),
    stdin: isOn(given.stdin),
    run_after_disconnect_ms: runAfter(given, tty || isOn(given.detachable), problems),
    ...(folder ? { folder } : {}),
  };
  if (problems.length > 0)
    fail("invalid_request", problems.map((one) => `${one.path} ${one.problem}`).join("; "), { details: problems });
  return input;
}

const DEFAULT_SIZE = { rows: 24, cols: 80 };
export const isSide = (value: number): boolean =>
  Number.isInteger(value) && value >= 1 && value <= MACHINE_LIMITS.terminal_side;

function commandOf(words: readonly string[], path: string | undefined): readonly string[] {
  if (words.length > 0) return words;
  return path ? [path] : SHELL;
}

function variablesOf(pairs: readonly string[], problems: Problem[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at > 0) found[pair.slice(0, at)] = pair.slice(at + 1);
    else problems.push({ path: "env", problem: "is not a variable", allowed: "NAME=value" });
  }
  return found;
}

/** A command that is made to be left runs on; another one for a moment, in which its client may return. */
function runAfter(given: GivenExec, stays: boolean, problems: Problem[]): number | undefined {
  const given_ms = given.max_run_after_disconnect;
  const text = typeof given_ms === "string" ? given_ms : "";
  if (text === "") return stays ? undefined : SPRITE_LIMITS.run_after_disconnect_ms;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : parseDuration(text);
  const most = SPRITE_LIMITS.run_after_disconnect_max_ms;
  if (ms === undefined || ms > most) {
    const allowed = "a time such as 30s or 1h, at most a year (limit run_after_disconnect_max_ms)";
    problems.push({ path: "max_run_after_disconnect", problem: "is not such a time", allowed });
    return undefined;
  }
  // Zero is for ever.
  return ms === 0 ? undefined : ms;
}
