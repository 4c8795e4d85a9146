import { messageOf } from "#core/assert.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import type { OrgText } from "../engine/protocol.ts";
import type { ImportResult } from "../tsdb/importer.ts";

/** Gathered for so long and then handed over together. */
const GATHER_MS = 100;
/** Past it they are handed over at once. */
const GATHER_BYTES = 4 * 1024 * 1024;

interface Waiting extends OrgText {
  settle(outcome: PromiseSettledResult<ImportResult>): void;
}

/**
 * What targets answered, on its way to the engine. Waking the engine's thread and being woken by it costs as much as
 * reading an answer of a few hundred series, so answers go together.
 */
export class Outbox {
  readonly #engine: () => Pick<MetricsEngine, "importTexts">;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(engine: () => Pick<MetricsEngine, "importTexts">) {
    this.#engine = engine;
  }

  async import(text: OrgText): Promise<ImportResult> {
    const outcome = await new Promise<PromiseSettledResult<ImportResult>>((settle) => {
      this.#waiting.push({ ...text, settle });
      this.#bytes += text.bytes.length;
      if (this.#bytes >= GATHER_BYTES) void this.#send();
      else this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS);
    });
    if (outcome.status === "fulfilled") return outcome.value;
    throw outcome.reason;
  }

  async #send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sent = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    const texts = sent.map(({ org, bytes, options }) => ({ org, bytes, options }));
    try {
      const outcomes = await this.#engine().importTexts(texts);
      for (const [i, outcome] of outcomes.entries()) sent[i]?.settle(outcome);
    } catch (reason) {
      const failed = reason instanceof Error ? reason : new Error(messageOf(reason));
      for (const { settle } of sent) settle({ status: "rejected", reason: failed });
    }
  }
}
