/** A metric's description, as its sender gave it. */
export interface MetricMetadata {
  type: string;
  help: string;
  unit: string;
}

/** A target repeats its descriptions every time; they are read the first time and then once in so many. */
const READ_EVERY = 40;
/** Targets whose turn is known. One more: all begin anew. */
const TARGETS_MOST = 100_000;
/** Metrics whose description is remembered. One more is not. */
const METRICS_MOST = 20_000;
const CHARS_MOST = 1000;

/** Descriptions of an org's metrics, as its senders last gave them. In memory only: senders repeat themselves. */
export class MetadataIndex {
  readonly #known = new Map<string, MetricMetadata>();

  readonly #turns = new Map<string, number>();

  /** What reads descriptions, when it is this sender's turn; a sender without a name always has it. */
  due(target: string | undefined): { onMetadata?: MetadataIndex["note"] } {
    if (target === undefined) return { onMetadata: this.note };
    const turn = this.#turns.get(target) ?? 0;
    if (turn === 0 && this.#turns.size >= TARGETS_MOST) this.#turns.clear();
    this.#turns.set(target, turn + 1);
    return turn % READ_EVERY === 0 ? { onMetadata: this.note } : {};
  }

  get list(): [string, MetricMetadata][] {
    return [...this.#known];
  }

  readonly note = (metric: string, kind: keyof MetricMetadata, text: string): void => {
    let known = this.#known.get(metric);
    if (!known) {
      if (this.#known.size >= METRICS_MOST || metric.length > CHARS_MOST) return;
      known = { type: "unknown", help: "", unit: "" };
      this.#known.set(metric, known);
    }
    known[kind] = text.slice(0, CHARS_MOST);
  };
}
