import { PROXY_LIMITS } from "../limits.ts";
import type { Count } from "../table.ts";

/** Upper bounds of all histogram buckets, in seconds; one more bucket holds the rest. */
export const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;

type Labels = Record<string, string>;

class Histogram {
  readonly buckets = new Float64Array(BOUNDS.length + 1);
  sum = 0;
  count = 0;

  add(seconds: number): void {
    let at = 0;
    while (at < BOUNDS.length && seconds > (BOUNDS[at] as number)) at++;
    this.buckets[at] = (this.buckets[at] as number) + 1;
    this.sum += seconds;
    this.count++;
  }
}

/** Counters by name and one label, reset when they are reported. */
class Tally {
  readonly #side: "edge" | "app";
  readonly #org_id: string;
  readonly #labels: Labels;
  #numbers = new Map<string, number>();
  #times = new Map<string, Histogram>();
  /** Response counts by status, without a name lookup because every request counts one. */
  #answers: Histogram[] = [];

  constructor(side: "edge" | "app", org_id: string, labels: Labels) {
    this.#side = side;
    this.#org_id = org_id;
    this.#labels = labels;
  }

  add(name: string, by: number): void {
    this.#numbers.set(name, (this.#numbers.get(name) ?? 0) + by);
  }

  time(name: string, seconds: number): void {
    const histogram = this.#times.get(name) ?? new Histogram();
    this.#times.set(name, histogram);
    histogram.add(seconds);
  }

  answered(status: number, seconds: number): void {
    this.#answers[status] ??= new Histogram();
    this.#answers[status].add(seconds);
  }

  /** Returns and resets what was counted. A key is `name` or `name|label=value`. */
  take(): Count[] {
    this.#nameAnswers();
    if (this.#numbers.size === 0 && this.#times.size === 0) return [];
    const counts: Count[] = [];
    for (const [key, by] of this.#numbers) counts.push({ ...this.#named(key), by });
    for (const [key, { buckets, sum, count }] of this.#times) {
      counts.push({ ...this.#named(key), by: count, buckets: [...buckets], sum });
    }
    this.#numbers = new Map();
    this.#times = new Map();
    return counts;
  }

  #nameAnswers(): void {
    for (const [status, histogram] of this.#answers.entries()) {
      if (!histogram) continue;
      this.add(`svc_${this.#side}_http_responses_count|status=${status}`, histogram.count);
      this.#times.set(`svc_${this.#side}_http_response_time_seconds|status=${status}`, histogram);
    }
    this.#answers = [];
  }

  #named(key: string): Pick<Count, "name" | "org_id" | "labels"> {
    const [name = "", label] = key.split("|");
    const at = label?.indexOf("=") ?? -1;
    const own = label === undefined ? {} : { [label.slice(0, at)]: label.slice(at + 1) };
    return { name, org_id: this.#org_id, labels: { ...this.#labels, ...own } };
  }
}

/** A source of counts, held until nothing more can be counted. */
export interface Counters {
  /** A connection is open, so there will be more. */
  readonly busy: boolean;
  take(): Count[];
}

/** Counts traffic between clients and the proxy, for one app. */
export class EdgeCounters implements Counters {
  readonly #tally: Tally;
  /** Server names of failed handshakes, which clients choose. */
  readonly #names = new Set<string>();
  #open = 0;

  constructor(org_id: string, labels: Labels) {
    this.#tally = new Tally("edge", org_id, labels);
  }

  responded(status: number, seconds: number): void {
    this.#tally.answered(status, seconds);
  }

  /** Counts a response of a route that the app's config names. */
  routed(route: string, status: number, seconds: number): void {
    this.#tally.time(`svc_edge_http_route_response_time_seconds|route=${route}`, seconds);
    if (status >= 500) this.#tally.add(`svc_edge_http_route_errors_count|route=${route}`, 1);
  }

  get busy(): boolean {
    return this.#open > 0;
  }

  connected(): void {
    this.#open++;
    this.#tally.add("svc_edge_tcp_connects_count", 1);
  }

  /** Counts a connection for this app from now on, and no longer for the previous one. */
  takeOver(before: EdgeCounters | undefined): void {
    if (before === this) return;
    before?.disconnected();
    this.connected();
  }

  disconnected(): void {
    this.#open--;
    this.#tally.add("svc_edge_tcp_disconnects_count", 1);
  }

  moved(bytes_in: number, bytes_out: number): void {
    if (bytes_in > 0) this.#tally.add("svc_edge_data_in", bytes_in);
    if (bytes_out > 0) this.#tally.add("svc_edge_data_out", bytes_out);
  }

  handshakeDone(version: string, seconds: number): void {
    this.#tally.time(`svc_edge_tls_handshake_time_seconds|version=${version}`, seconds);
  }

  handshakeFailed(servername: string): void {
    if (this.#names.size < PROXY_LIMITS.handshake_names) this.#names.add(servername);
    const named = this.#names.has(servername) ? servername : "";
    this.#tally.add(`svc_edge_tls_handshake_errors|servername=${named}`, 1);
  }

  take(): Count[] {
    return this.#tally.take();
  }
}

/** Counts traffic between the proxy and one machine. */
export class TargetCounters implements Counters {
  readonly #tally: Tally;
  #open = 0;

  constructor(org_id: string, labels: Labels) {
    this.#tally = new Tally("app", org_id, labels);
  }

  responded(status: number, seconds: number): void {
    this.#tally.answered(status, seconds);
  }

  get busy(): boolean {
    return this.#open > 0;
  }

  connected(seconds: number): void {
    this.#open++;
    this.#tally.add("svc_app_tcp_connects_count", 1);
    this.#tally.time("svc_app_connect_time_seconds", seconds);
  }

  disconnected(): void {
    this.#open--;
    this.#tally.add("svc_app_tcp_disconnects_count", 1);
  }

  take(): Count[] {
    return this.#tally.take();
  }
}
