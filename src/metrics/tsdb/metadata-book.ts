/** What a sender said about a metric. */
export interface MetricMetadata {
  type: string;
  help: string;
  unit: string;
}

/** Metrics whose description is remembered. One more is not. */
const METRICS_MOST = 20_000;
const CHARS_MOST = 1000;

/** Descriptions of an org's metrics, as its senders last gave them. In memory only: senders repeat themselves. */
export class MetadataBook {
  readonly #known = new Map<string, MetricMetadata>();

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
