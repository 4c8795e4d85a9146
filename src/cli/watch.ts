/** Answers that are looked at again and again. */
import { setTimeout } from "node:timers/promises";
import type { Input, Result, Verb } from "./verb.ts";

const EVERY_MS = 2000;
const CLEAR = "\u001b[H\u001b[2J\u001b[3J";

/** Verbs that only look: asking twice changes nothing. */
const READING = new Set([
  "list",
  "show",
  "top",
  "ps",
  "info",
  "df",
  "releases",
  "services",
  "diff",
  "explain",
  "query",
  "targets",
]);

export const isReading = ({ words, live }: Verb): boolean =>
  live === true || READING.has(words.split(" ").at(-1) ?? "");

export function isWatched(verb: Verb, options: Input["options"]): boolean {
  if (options["watch"] === true) return true;
  return verb.live === true && process.stdout.isTTY && options["once"] !== true && options["json"] !== true;
}

/**
 * On a terminal the answer is drawn over the one before. Elsewhere it is printed whenever it is another one, as one
 * line with --json, so that a program can read on.
 */
export async function watchAnswers(run: () => Promise<Result>, json: boolean): Promise<void> {
  let before: string | undefined;
  for (;;) {
    const { data, text } = await run();
    const drawn = process.stdout.isTTY && !json;
    const now = json ? JSON.stringify(data) : text;
    if (drawn) process.stdout.write(`${CLEAR}${fit(now)}\n`);
    else if (now !== before) process.stdout.write(`${now}\n`);
    before = now;
    await setTimeout(EVERY_MS);
  }
}

/** As much as the terminal can show: what is longer would scroll the head away. */
function fit(text: string): string {
  const { rows } = process.stdout;
  const lines = text.split("\n");
  return lines.length < rows ? text : [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more`].join("\n");
}
