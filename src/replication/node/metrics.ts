/** GET /metrics, in the text format Prometheus reads. */
import type { ReplicatedDatabase } from "../database/database.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { Directory } from "./directory.ts";
import type { EventHub } from "./events.ts";
import type { PositionWaits } from "./position-waits.ts";
import type { Streams } from "./streams.ts";
import type { ProxyStatus } from "./types.ts";

/** The node as its metrics see it. */
interface MeasuredNode {
  readonly role: { readonly kind: string };
  readonly term: number;
  readonly lag_ms: number;
  readonly events: EventHub;
  readonly streams: Streams;
  readonly directory: Directory;
  readonly acknowledgements: Acknowledgements;
  readonly waits: PositionWaits;
  readonly proxy: ProxyStatus | undefined;
}

interface Metric {
  name: string;
  type: "counter" | "gauge";
  help: string;
  /** A value, or one per database. */
  value: number | Map<string, number>;
  /** Further labels, by database. */
  labels?: Map<string, string>;
}

export class NodeMetrics {
  readonly #node: MeasuredNode;
  transactions = 0;
  dropped = 0;
  disconnects = 0;

  constructor(node: MeasuredNode) {
    this.#node = node;
  }

  /**
   * Counts transactions that a restored file undoes. Returns false on a replica: there the primary's transactions stay,
   * and the file is a divergence.
   */
  countUndone(count: number): boolean {
    if (this.#node.role.kind !== "primary") return false;
    this.dropped += count;
    return true;
  }

  text(): string {
    return this.#all().map(render).join("");
  }

  #each(value: (database: ReplicatedDatabase) => number): Map<string, number> {
    return new Map([...this.#node.directory].map((database) => [database.name, value(database)]));
  }

  #problems(): Metric {
    const problems = [...this.#node.directory.problems];
    return {
      name: "database_problem",
      type: "gauge",
      help: "1 for each database that cannot be used now; /info says why.",
      value: new Map(problems.map(([name]) => [name, 1])),
      labels: new Map(problems.map(([name, { state }]) => [name, `,state=${JSON.stringify(state)}`])),
    };
  }

  #proxy(): Metric[] {
    const { proxy } = this.#node;
    if (!proxy) return [];
    const { longest_wait_ms, ...counts } = proxy.counts;
    const gauge = (name: string, help: string, value: number): Metric => ({ name, type: "gauge", help, value });
    return [
      gauge("proxy_waiting", "Writes that wait for a primary.", proxy.waiting),
      gauge("proxy_longest_wait_seconds", "The longest that a write took, waiting included.", longest_wait_ms / 1000),
      ...Object.entries(counts).map(
        ([what, value]): Metric => ({
          name: `proxy_${what}_total`,
          type: "counter",
          help: PROXY_HELP[what] ?? "",
          value,
        }),
      ),
    ];
  }

  #all(): Metric[] {
    const { role, term, lag_ms, events, streams, directory, acknowledgements, waits } = this.#node;
    const gauge = (name: string, help: string, value: Metric["value"]): Metric => ({
      name,
      type: "gauge",
      help,
      value,
    });
    const counter = (name: string, help: string, value: number): Metric => ({ name, type: "counter", help, value });
    return [
      gauge("is_primary", "1 on the primary.", role.kind === "primary" ? 1 : 0),
      gauge("term", "The highest term this node knows of.", term),
      gauge("databases", "Open databases.", directory.count),
      gauge("databases_refused", "Databases that cannot be used now.", directory.problems.size),
      this.#problems(),
      gauge(
        "txid",
        "Transaction the database is at.",
        this.#each((d) => d.position.txid),
      ),
      gauge(
        "durable_txid",
        "Transaction up to which the log is durable.",
        this.#each((d) => d.log.durable),
      ),
      gauge(
        "log_bytes",
        "Bytes of transactions retained for replicas.",
        this.#each((d) => d.log.bytes),
      ),
      gauge(
        "wal_frames",
        "Frames in SQLite's log.",
        this.#each((d) => d.wal_frames),
      ),
      gauge("lag_seconds", "Replication lag of this replica at the last message of its primary.", lag_ms / 1000),
      gauge("replicas", "Connected replicas.", streams.replicas.length),
      gauge("send_lag_seconds", "How long a replica has not been sent everything.", streams.lag_ms / 1000),
      gauge("replicas_in_sync", "Replicas that count for --ack.", acknowledgements.in_sync.in_sync.length),
      gauge(
        "acknowledged_txid",
        "Transaction up to which a database is acknowledged, with --ack.",
        acknowledgements.mode.replicas > 0 ? this.#each((d) => acknowledgements.in_sync.upTo(d.name)) : new Map(),
      ),
      gauge("waits", "Requests that wait for a transaction.", waits.count),
      gauge("event_readers", "Connected readers of /events.", events.readers),
      ...this.#proxy(),
      counter("transactions_total", "Transactions captured or applied.", this.transactions),
      counter("transactions_dropped_total", "Transactions dropped to follow another primary.", this.dropped),
      counter("snapshots_sent_total", "Whole databases sent to replicas.", streams.snapshots_sent),
      counter("stream_bytes_total", "Bytes sent to replicas.", streams.bytes_sent),
      counter("disconnects_total", "Times the stream from the primary ended.", this.disconnects),
      counter("events_sent_total", "Events written to readers.", events.sent),
      counter("event_readers_cut_total", "Readers of /events cut for being 1,024 events behind.", events.cut),
    ];
  }
}

const PROXY_HELP: Record<string, string> = {
  local: "Requests answered by the application beside this node.",
  forwarded: "Requests answered by the primary's application.",
  queued: "Writes that had to wait for a primary.",
  repeated: "Requests that were sent again because their primary was lost.",
  failed: "Requests that the proxy answered with an error of its own.",
};

function render({ name, type, help, value, labels }: Metric): string {
  const full = `hangar_db_${name}`;
  const head = `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n`;
  if (typeof value === "number") return `${head}${full} ${value}\n`;
  const lines = [...value].map(([db, v]) => `${full}{db=${JSON.stringify(db)}${labels?.get(db) ?? ""}} ${v}\n`);
  return head + lines.join("");
}
