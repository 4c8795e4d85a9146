/** How long a deploy waits, and how long a machine must run before it counts as healthy. */
import { parseDuration } from "#core/durations.ts";
import { time } from "../app-file/units.ts";
import type { Option } from "../options.ts";
import { type Input, textOption, UsageError } from "../verb.ts";
import type { Definition } from "./definition.ts";

const WAIT_MS = 5 * 60_000;
const STABLE_MS = 5000;

export interface Timing {
  /** Per machine; the file's or the default when absent. */
  wait_ms: number | undefined;
  stable_ms: number;
}

export const TIMING_OPTIONS: readonly Option[] = [
  ["--wait-timeout <duration>", "timeout for each machine to become healthy (default: the file's, else 5m)"],
  ["--stable-for <duration>", "how long a machine must run, with all checks passing, to be healthy (default: 5s)"],
];

export const timingOf = (input: Input): Timing => ({
  wait_ms: duration(input, "waitTimeout", "--wait-timeout"),
  stable_ms: duration(input, "stableFor", "--stable-for") ?? STABLE_MS,
});

function duration(input: Input, name: string, flag: string): number | undefined {
  const text = textOption(input, name);
  const ms = text === undefined ? undefined : parseDuration(time(text, "s"));
  if (text !== undefined && ms === undefined) throw new UsageError(`${flag} is a duration such as 30s, not ${text}`);
  return ms;
}

export function waitMs({ wait_timeout }: Pick<Definition, "wait_timeout">, { wait_ms }: Timing): number {
  return wait_ms ?? (wait_timeout === undefined ? undefined : parseDuration(time(wait_timeout, "s"))) ?? WAIT_MS;
}

/** A release command may have its own timeout. */
export const releaseCommandMs = (
  { release_command_timeout, wait_timeout }: Pick<Definition, "release_command_timeout" | "wait_timeout">,
  timing: Timing,
): number => waitMs({ ...pick(release_command_timeout ?? wait_timeout) }, timing);

const pick = (wait_timeout: string | undefined) => (wait_timeout === undefined ? {} : { wait_timeout });
