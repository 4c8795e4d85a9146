import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import pino from "pino";
import { LIMITS } from "./limits.ts";
import type { LogLevel } from "./settings.ts";

/** Structured log: a message and facts. Never contains secrets. */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/** For tests and tools without a log. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Writes JSON lines to `file`, warnings and errors also to stderr. The file is rotated to `<file>.1` at its limit, so
 * that a log never fills the disk.
 */
export function openLog(file: string, level: LogLevel): Log & { close(): void; quiet(): void } {
  const lines = new LogFile(file);
  let quiet = false;
  const terminal = { write: (line: string) => void (quiet || process.stderr.write(line)) };
  const streams = pino.multistream([
    { level, stream: lines },
    { level: "warn", stream: terminal },
  ]);
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, errorKey: "error" }, streams);
  return Object.assign(logger, {
    close: () => lines.close(),
    /** Stops writing to the terminal. */
    quiet() {
      quiet = true;
    },
  });
}

/** Unbuffered, so that the last line before a crash is there. */
class LogFile {
  readonly #file: string;
  #fd: number;
  #bytes: number;
  /** The last line was not, or only partly, written. */
  #torn = false;

  constructor(file: string) {
    this.#file = file;
    this.#fd = openSync(file, "a", 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  /** Never throws: a line that cannot be written, for example on a full disk, is lost. */
  write(line: string): void {
    try {
      const data = Buffer.from(this.#torn ? `\n${line}` : line);
      this.#torn = true;
      const written = writeSync(this.#fd, data);
      this.#torn = written < data.length;
      this.#bytes += written;
      if (this.#bytes >= LIMITS.log_file_bytes) this.#setAside();
    } catch {
      // The next line tries again.
    }
  }

  close(): void {
    closeSync(this.#fd);
    // The descriptor number may be reused, and late lines would be written to another file.
    this.#fd = -1;
  }

  #setAside(): void {
    this.#bytes = 0;
    renameSync(this.#file, `${this.#file}.1`);
    const fresh = openSync(this.#file, "a", 0o600);
    closeSync(this.#fd);
    this.#fd = fresh;
  }
}
