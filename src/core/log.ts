import { renameSync, statSync } from "node:fs";
import pino from "pino";
import { LIMITS } from "./limits.ts";
import type { LogLevel } from "./settings.ts";

/** Structured lines: what happened in words, the facts beside them. Secrets never go in. */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/** For tests and tools that have nothing to say. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * JSON lines into `file`, warnings and worse on stderr too. The file is set aside as `<file>.1` when it
 * reaches its limit, so that a log never fills the disk.
 */
export function openLog(file: string, level: LogLevel): Log & { close(): void } {
  const destination = pino.destination({ dest: file, append: true, mkdir: true, sync: true });
  let bytes = statSync(file).size;
  const rotating = {
    write(line: string): void {
      destination.write(line);
      bytes += line.length;
      if (bytes < LIMITS.log_file_bytes) return;
      bytes = 0;
      renameSync(file, `${file}.1`);
      destination.reopen();
    },
  };
  const streams = pino.multistream([
    { level, stream: rotating },
    { level: "warn", stream: process.stderr },
  ]);
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, errorKey: "error" }, streams);
  return Object.assign(logger, { close: () => destination.flushSync() });
}
