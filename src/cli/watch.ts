/** Refreshes the output of read-only commands (`--watch`). */
import { constants } from "node:os";
import { setTimeout } from "node:timers/promises";
import { jsonText, terminalText } from "./terminal-text.ts";
import type { Input, Result, Verb } from "./verb.ts";

const EVERY_MS = 2000;
const ESCAPE = "\u001b[";
const TOP = `${ESCAPE}H`;
const HINT = "q ends";
const QUIT = ["q", "Q", "\u0003"];
const ENDINGS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Read-only commands, which can be repeated safely. */
const READING = new Set(["list", "show", "top", "ps", "info", "df", "services", "diff", "explain", "query", "targets"]);

export const isReading = ({ words, live }: Verb): boolean =>
  live === true || READING.has(words.split(" ").at(-1) ?? "");

export function isWatched(verb: Verb, options: Input["options"]): boolean {
  if (options["watch"] === true) return true;
  return verb.live === true && process.stdout.isTTY && options["once"] !== true && options["json"] !== true;
}

/**
 * On a terminal the output is redrawn in place, until `q` is pressed. Elsewhere it is printed whenever it has changed,
 * as one line with --json, so that a program can parse it.
 */
export async function watchResponses(run: () => Promise<Result>, json: boolean): Promise<void> {
  if (process.stdout.isTTY && !json) return await drawResponses(run);
  let before: string | undefined;
  for (;;) {
    const { data, text } = await run();
    const now = json ? jsonText(data) : terminalText(text);
    if (now !== before) process.stdout.write(`${now}\n`);
    before = now;
    await setTimeout(EVERY_MS);
  }
}

async function drawResponses(run: () => Promise<Result>): Promise<void> {
  const quit = keyPressed();
  let text = "";
  const draw = (): void => void process.stdout.write(`${TOP}${fit(`${text}\n\n${HINT}`)}`);
  enter();
  process.stdout.on("resize", draw);
  try {
    while (!quit.aborted) {
      text = terminalText((await run()).text);
      draw();
      await setTimeout(EVERY_MS, undefined, { signal: quit }).catch(() => {});
    }
  } finally {
    process.stdout.off("resize", draw);
    leave();
  }
}

/** Switches to the alternate screen, without cursor or line wrap; leaving restores the former content. */
function enter(): void {
  process.stdout.write(`${ESCAPE}?1049h${ESCAPE}?25l${ESCAPE}?7l`);
  process.once("exit", leave);
  for (const signal of ENDINGS) process.once(signal, end);
}

/** Exits through the "exit" event, so that a signal restores the terminal. */
const end = (signal: (typeof ENDINGS)[number]): never => process.exit(128 + constants.signals[signal]);

function leave(): void {
  process.off("exit", leave);
  for (const signal of ENDINGS) process.off(signal, end);
  process.stdout.write(`${ESCAPE}?7h${ESCAPE}?25h${ESCAPE}?1049l`);
  if (process.stdin.isTTY) process.stdin.setRawMode(false);
  process.stdin.pause();
}

/** Aborted by `q` and Ctrl-C, which both arrive as keys in raw mode. */
function keyPressed(): AbortSignal {
  const pressed = new AbortController();
  if (!process.stdin.isTTY) return pressed.signal;
  process.stdin.setRawMode(true).on("data", (keys: Buffer) => {
    if (QUIT.some((key) => keys.includes(key))) pressed.abort();
  });
  return pressed.signal;
}

/** Cuts the output to the height of the terminal, so that its head and the hint stay visible. */
function fit(text: string): string {
  const { rows } = process.stdout;
  const lines = text.split("\n");
  const shown = lines.length < rows ? lines : [...lines.slice(0, rows - 3), `… ${lines.length - rows + 1} more`, HINT];
  const cleared = shown.map((line) => `${line}${ESCAPE}K`);
  return `${cleared.join("\n")}${ESCAPE}J`;
}
