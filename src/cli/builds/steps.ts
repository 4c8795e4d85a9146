/** Buildah's output as steps: `[2/5] RUN make`, with `CACHED` behind those that did not run, and how long each took. */
import { systemClock } from "#core/clock.ts";

const STEP = /^(?:\[(\d+)\/\d+\] )?STEP (\d+\/\d+): (.*)$/;
const CACHED = /^--> Using cache /;
const DONE = /^--> [0-9a-f]{11,}$/;
/** Output lines of the push to the platform's own image store, which do not help the user. */
const NOISE =
  /^(Getting image source|Copying (blob|config)|Writing manifest|Storing signatures|(\[\d+\/\d+\] )?COMMIT |Successfully tagged|[0-9a-f]{64}$)/;

export class StepPrinter {
  readonly #print: (line: string) => void;
  #rest = "";
  #step: { name: string; began: number; cached: boolean } | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  write(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  end(): void {
    if (this.#rest !== "") this.#line(this.#rest);
    this.#rest = "";
    // A step that is still open here failed, and its output has the error.
    this.#step = undefined;
  }

  #line(line: string): void {
    const step = STEP.exec(line);
    if (step) {
      this.#close();
      const [, stage, number = "", words = ""] = step;
      const name = stage === undefined ? `[${number}]` : `[stage ${stage}, ${number}]`;
      this.#step = { name, began: systemClock.monotonic(), cached: false };
      this.#print(`${name} ${words}`);
    } else if (CACHED.test(line)) {
      if (this.#step) this.#step.cached = true;
    } else if (DONE.test(line)) this.#close();
    else if (!NOISE.test(line)) this.#print(`    ${line}`);
  }

  #close(): void {
    if (!this.#step) return;
    const { name, began, cached } = this.#step;
    this.#step = undefined;
    const seconds = ((systemClock.monotonic() - began) / 1000).toFixed(1);
    this.#print(cached ? `${name} CACHED` : `${name} done in ${seconds} s`);
  }
}
