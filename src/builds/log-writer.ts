/** Writes a build's output to the store in pieces, with the values of build secrets masked, and the step it is at. */
import type { Clock } from "#core/clock.ts";
import type { BuildLimits } from "./limits.ts";
import { StepReader } from "./step-reader.ts";
import type { BuildStore, LogPiece } from "./store.ts";

interface Parts {
  store: Pick<BuildStore, "appendLog" | "change">;
  clock: Clock;
  limits: BuildLimits;
  secrets: readonly string[];
}

const FLUSH_MS = 250;
/** Shorter values would mask ordinary text. */
const MASKED_CHARS = 4;
const MASK = "***";

export class LogWriter {
  readonly #id: string;
  readonly #parts: Parts;
  readonly #masked: readonly string[];
  #waiting = "";
  #left: number;
  readonly #steps: StepReader;
  #seq = 0;
  #writing: Promise<void> = Promise.resolve();
  #scheduled = false;

  constructor(id: string, parts: Parts) {
    this.#id = id;
    this.#parts = parts;
    this.#left = parts.limits.log_bytes;
    this.#steps = new StepReader(parts.limits.step_chars);
    // The output comes in lines, and so does a key that has several.
    const lines = parts.secrets.flatMap((secret) => secret.split("\n"));
    this.#masked = [...new Set(lines.map((line) => line.trim()))]
      .filter((line) => line.length >= MASKED_CHARS)
      .sort((a, b) => b.length - a.length);
  }

  /** The text without secrets. */
  mask(text: string): string {
    return this.#masked.reduce((found, secret) => found.replaceAll(secret, MASK), text);
  }

  write(text: string): void {
    if (this.#left <= 0) return;
    this.#left -= Buffer.byteLength(text);
    this.#waiting += this.#left > 0 ? this.mask(text) : "the rest of the output is left out (limit log_bytes)\n";
    if (this.#scheduled) return;
    this.#scheduled = true;
    void this.#parts.clock.sleep(FLUSH_MS).then(() => {
      this.#scheduled = false;
      return this.#flush();
    });
  }

  /** Resolves when all output is stored. */
  async end(): Promise<void> {
    await this.#flush();
  }

  #flush(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = "";
    if (text !== "") {
      const piece = { seq: ++this.#seq, text };
      const step = this.#steps.read(text);
      // A failed write to the log does not fail the build.
      this.#writing = this.#writing.then(() => this.#keep(piece, step).catch(() => {}));
    }
    return this.#writing;
  }

  async #keep(piece: LogPiece, step: string | undefined): Promise<void> {
    const { store } = this.#parts;
    await store.appendLog(this.#id, piece);
    if (step !== undefined) await store.change(this.#id, ["running"], { step });
  }
}
