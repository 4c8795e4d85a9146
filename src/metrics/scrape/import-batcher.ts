import { messageOf } from "#core/assert.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import type { OrgText, TextOptions } from "../engine/protocol.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";

/** Time for which responses are batched. */
const GATHER_MS = 100;
/** Size of a batch; a fuller one, or one larger response, is sent at once. */
const GATHER_BYTES = 1024 * 1024;

type Outcome = PromiseSettledResult<ImportResult>;

/**
 * Batches the responses of targets for the engine. Waking the engine's thread and being woken by it costs as much as
 * parsing a response of a few hundred series, so responses are sent together, in memory that is returned for reuse.
 */
export class ImportBatcher {
  readonly #engine: () => Pick<MetricsEngine, "importTexts">;
  #bytes: Uint8Array = new Uint8Array(0);
  #used = 0;
  #texts: OrgText[] = [];
  #settle: ((outcome: Outcome) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(engine: () => Pick<MetricsEngine, "importTexts">) {
    this.#engine = engine;
  }

  /** The text is copied before this returns its promise. */
  async import(org: string, text: Uint8Array, options: TextOptions): Promise<ImportResult> {
    if (this.#used + text.length > this.#bytes.length) this.#makeRoom(text.length);
    const start = this.#used;
    this.#bytes.set(text, start);
    this.#used += text.length;
    this.#texts.push({ org, start, end: this.#used, options });
    this.#timer ??= setTimeout(() => this.#send(), GATHER_MS);
    const outcome = await new Promise<Outcome>((settle) => this.#settle.push(settle));
    if (outcome.status === "fulfilled") return outcome.value;
    throw outcome.reason;
  }

  #makeRoom(needed: number): void {
    if (this.#texts.length > 0) this.#send();
    if (this.#bytes.length < needed) this.#bytes = new Uint8Array(Math.max(needed, GATHER_BYTES));
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const settle = this.#settle;
    const [bytes, texts] = [this.#bytes, this.#texts];
    const hand = async (): ReturnType<MetricsEngine["importTexts"]> => await this.#engine().importTexts(bytes, texts);
    this.#bytes = new Uint8Array(0);
    this.#used = 0;
    this.#texts = [];
    this.#settle = [];
    void hand().then(
      ({ outcomes, bytes: back }) => {
        for (const [i, outcome] of outcomes.entries()) settle[i]?.(outcome);
        // The usual size, not the largest ever seen.
        if (this.#bytes.length === 0 && back.length === GATHER_BYTES) this.#bytes = back;
      },
      (thrown: unknown) => {
        const reason = thrown instanceof Error ? thrown : new Error(messageOf(thrown));
        for (const one of settle) one({ status: "rejected", reason });
      },
    );
  }
}
