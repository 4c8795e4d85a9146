import { inspect } from "node:util";
import type { Log } from "#core/log.ts";

/** Keeps what a driver complains of, so that a test that fails can say it. */
export class Warnings {
  readonly #said: string[] = [];

  readonly log: Log = {
    debug() {},
    info() {},
    warn: (facts, text) => this.#note(facts, text),
    error: (facts, text) => this.#note(facts, text),
  };

  text(): string {
    return this.#said.length === 0 ? "the driver warned of nothing" : `the driver warned:\n${this.#said.join("\n")}`;
  }

  #note(facts: object, text: string): void {
    this.#said.push(`${text} ${inspect(facts, { depth: 3, breakLength: 200 })}`);
  }
}
