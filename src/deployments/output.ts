import { DEPLOYMENT_LIMITS } from "./limits.ts";

/** Lines of a deployment, for readers that come and go; the deployment goes on without them. */
export class DeploymentOutput {
  readonly #lines: string[] = [];
  #ended = false;
  #waiting = Promise.withResolvers<void>();

  add(line: string): void {
    const { deployment_output_lines: most, deployment_line_chars } = DEPLOYMENT_LIMITS;
    if (this.#lines.length < most) this.#lines.push(line.slice(0, deployment_line_chars));
    else if (this.#lines.length === most)
      this.#lines.push(`The rest of the output is left out (limit deployment_output_lines).`);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Everything so far, then what comes, until the end. */
  async *read(signal: AbortSignal): AsyncGenerator<string[]> {
    const left = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (let at = 0; !signal.aborted; ) {
      const lines = this.#lines.slice(at);
      at += lines.length;
      if (lines.length > 0) yield lines;
      else if (this.#ended) return;
      else await Promise.race([this.#waiting.promise, left]);
    }
  }

  #wake(): void {
    this.#waiting.resolve();
    this.#waiting = Promise.withResolvers();
  }
}
