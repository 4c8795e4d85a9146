import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
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
    /** From now on only into the file: the last word on the terminal has been said. */
    quiet() {
      quiet = true;
    },
  });
}

/** Written line by line, so that the last one before a crash is there. */
class LogFile {
  readonly #file: string;
  #fd: number;
  #bytes: number;
  /** The last line did not fit, or only its beginning did. */
  #torn = false;

  constructor(file: string) {
    this.#file = file;
    this.#fd = openSync(file, "a", 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  /** Never throws: what cannot be written, on a full disk say, is lost, and nothing else is. */
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
    // Whoever opens a file next gets the same number, and would find late lines in it.
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
