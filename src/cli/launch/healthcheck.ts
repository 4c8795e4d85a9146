/** Converts the HEALTHCHECK of a Dockerfile to a check of the app file: OCI images have no field for it. */
import { checkOf } from "../compose/health.ts";
import type { Table } from "../compose/read.ts";

const TIMES = { interval: "interval", timeout: "timeout", grace_period: "start-period" };

/** Undefined when there is none, or when its command is no TCP or HTTP probe. */
export function healthCheck(dockerfile: string): Table | undefined {
  // The last one counts, as for Docker.
  const text = dockerfile.replaceAll(/\\[ \t]*\r?\n/g, " ");
  const last = text.split(/\r?\n/).findLast((line) => /^\s*HEALTHCHECK\s/i.test(line)) ?? "";
  const [, options = "", command] = /^\s*HEALTHCHECK((?:\s+--\S+)*)\s+CMD\s+(.+)$/i.exec(last) ?? [];
  const check = command === undefined ? undefined : checkOf(wordsOf(command));
  if (!check) return undefined;
  const given = Object.entries(TIMES).flatMap(([ours, theirs]) => {
    const time = new RegExp(`--${theirs}=(\\d+(?:\\.\\d+)?(?:ms|s|m|h))(?=\\s|$)`).exec(options)?.[1];
    return time === undefined ? [] : [[ours, time] as const];
  });
  return { interval: "5s", timeout: "2s", grace_period: "1s", ...Object.fromEntries(given), ...check };
}

/** A command in exec form (JSON) or shell form, as one line. */
function wordsOf(command: string): string {
  try {
    const words = JSON.parse(command) as unknown;
    if (Array.isArray(words)) return words.join(" ");
  } catch {
    // Shell form.
  }
  return command;
}
