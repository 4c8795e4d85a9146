/** Finds the steps in buildah's output: `STEP 3/7: RUN make`, of several stages with `[1/2] ` before it. */
const STEP = /^(?:\[(\d+\/\d+)\] )?STEP (\d+\/\d+): (.*)$/;

export class StepReader {
  readonly #chars: number;
  #rest = "";

  constructor(chars: number) {
    this.#chars = chars;
  }

  /** The step that began last in this piece of output, as `3/7 RUN make`; undefined when none began. */
  read(text: string): string | undefined {
    const lines = (this.#rest + text).split("\n");
    // A step is told from its beginning: the rest of a very long line is not needed.
    this.#rest = (lines.pop() ?? "").slice(0, this.#chars);
    const found = lines.map((line) => STEP.exec(line)).findLast((match) => match !== null);
    if (!found) return undefined;
    const [, stage, number, words] = found;
    return `${stage === undefined ? "" : `stage ${stage}, `}${number} ${words}`.slice(0, this.#chars);
  }
}
