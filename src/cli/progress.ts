import { setTimeout } from "node:timers/promises";
import { systemClock } from "#core/clock.ts";
import { bytesText } from "./output.ts";

const WIDTH = 24;
const POLL_MS = 200;

export interface Step<T> {
  /** The current result, and its progress when that is known. */
  value: T;
  done: boolean;
  progress?: { done_bytes: number; total_bytes: number } | undefined;
}

/**
 * Polls until the work is done, and shows a progress bar. On a terminal the bar is redrawn in place; elsewhere nothing
 * is printed, so that logs stay readable.
 */
export async function watch<T>(label: string, poll: () => Promise<Step<T>>): Promise<T> {
  const started = systemClock.monotonic();
  const drawn = process.stderr.isTTY;
  for (;;) {
    const { value, done, progress } = await poll();
    const seconds = (systemClock.monotonic() - started) / 1000;
    if (drawn) process.stderr.write(`\r\u001b[K${done ? "" : barText(label, progress, seconds)}`);
    if (done) return value;
    await setTimeout(POLL_MS);
  }
}

/** `restoring  ████████░░░░  62 %  1.2 GB of 2.0 GB  85 MB/s  9 s left`. */
function barText(label: string, progress: Step<unknown>["progress"], seconds: number): string {
  if (!progress || progress.total_bytes === 0) return `${label} … ${Math.floor(seconds)} s`;
  const { done_bytes, total_bytes } = progress;
  const share = Math.min(1, done_bytes / total_bytes);
  const full = Math.round(share * WIDTH);
  const speed = done_bytes / Math.max(seconds, 0.001);
  const left = speed > 0 ? `  ${Math.ceil((total_bytes - done_bytes) / speed)} s left` : "";
  const bar = "█".repeat(full) + "░".repeat(WIDTH - full);
  const amount = `${bytesText(done_bytes)} of ${bytesText(total_bytes)}`;
  return `${label}  ${bar}  ${Math.floor(share * 100)} %  ${amount}  ${bytesText(speed)}/s${left}`;
}
