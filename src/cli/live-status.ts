/**
 * The progress of several things at once, on stderr. On a terminal each has a line that is redrawn in place; in a pipe a
 * line is printed when something changes, and only then.
 */
import { systemClock } from "#core/clock.ts";
import { terminalText, visible } from "./terminal-text.ts";

interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

const ESCAPE = "\u001b[";
const NARROW = 80;

export class LiveStatus {
  readonly #output: Output;
  readonly #started = systemClock.monotonic();
  /** The current status of each thing that is still in progress. */
  readonly #current = new Map<string, string>();
  #drawn = 0;

  constructor(output: Output = process.stderr) {
    this.#output = output;
  }

  /** The status of `name` is `text` now. */
  set(name: string, text: string): void {
    const changed = this.#current.get(name) !== text;
    this.#current.set(name, text);
    if (this.#output.isTTY) this.#redraw();
    else if (changed) this.#print(this.#timed(`${name}: ${text}`));
  }

  /** `name` is no longer in progress; `text` is how it ended. */
  end(name: string, text?: string): void {
    this.#current.delete(name);
    if (text === undefined) this.#redraw();
    else this.log(text);
  }

  /** A line with the time since the beginning, which stays. */
  log(text: string): void {
    this.say(this.#timed(text));
  }

  /** Lines that stay, above those that are redrawn. */
  say(text: string): void {
    this.#erase();
    this.#print(text);
    this.#redraw();
  }

  #timed(text: string): string {
    const seconds = ((systemClock.monotonic() - this.#started) / 1000).toFixed(1);
    return `${seconds.padStart(6)} s  ${text}`;
  }

  #print(text: string): void {
    this.#output.write(`${terminalText(text)}\n`);
  }

  #erase(): void {
    if (this.#drawn > 0) this.#output.write(`${ESCAPE}${this.#drawn}A${ESCAPE}J`);
    this.#drawn = 0;
  }

  #redraw(): void {
    if (!this.#output.isTTY) return;
    this.#erase();
    // A line that wraps would take two rows, and be erased as one.
    const width = (this.#output.columns ?? NARROW) - 1;
    for (const [name, text] of this.#current)
      this.#print(
        visible(this.#timed(`${name}: ${text}`))
          .replaceAll("\n", " ")
          .slice(0, width),
      );
    this.#drawn = this.#current.size;
  }
}
