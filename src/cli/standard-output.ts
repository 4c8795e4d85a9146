/**
 * Standard output without Node's stream for it: for a short command, loading that takes longer than everything that is
 * printed. The stream is used for what only it can do: a reader that is slower than we are, and the terminal's size.
 */
import { fstatSync, writeSync } from "node:fs";
import { constants } from "node:os";

const STDOUT = 1;

/** Set once a reader was too slow: from then on everything goes through the stream, in order. */
let isStreaming = false;

let isShown: boolean | undefined;

/** Whether a person reads along. A pipe or a file is told from a terminal without loading anything. */
export function isTerminal(): boolean {
  isShown ??= fstatSync(STDOUT).isCharacterDevice() && process.stdout.isTTY === true;
  return isShown;
}

/** Writes text as it is. */
export function writeOut(text: string): void {
  const bytes = Buffer.from(text);
  const written = isStreaming ? 0 : writeAtOnce(bytes);
  if (written < bytes.length) writeToStream(bytes.subarray(written));
}

/** Answers how much was written: less than all when the other end does not block and is full. */
function writeAtOnce(bytes: Buffer): number {
  let written = 0;
  try {
    while (written < bytes.length) written += writeSync(STDOUT, bytes, written);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") endOnError(error as NodeJS.ErrnoException);
  }
  return written;
}

function writeToStream(bytes: Buffer): void {
  if (!isStreaming) process.stdout.on("error", endOnError);
  isStreaming = true;
  process.stdout.write(bytes);
}

/** Whoever reads may stop before the end, as `head` does. That is no mistake, and ends us as it ends any program. */
function endOnError(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(128 + constants.signals.SIGPIPE);
}
