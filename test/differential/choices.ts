/** Choices and the parts of the grammar that both dialects share. */
import { DATA_END_MS, DATA_START_MS } from "./data.ts";

/** A query and when it is asked: at `end_ms` alone when there is no step. */
export interface Asked {
  query: string;
  start_ms: number;
  end_ms: number;
  step_ms?: number;
}

/** A way to write something, and how often it is chosen. */
export type Form<T> = readonly [weight: number, make: () => T];

export const words = (text: string): string[] => text.trim().split(/\s+/);

const MINUTE_MS = 60_000;

export class Choices {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Whole numbers from 0. */
  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  chance(p: number): boolean {
    return this.#random() < p;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  /** One of the forms, each as often as its weight says. */
  form<T>(forms: readonly Form<T>[]): T {
    let left = this.#random() * forms.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of forms) {
      left -= weight;
      if (left < 0) return make();
    }
    return (forms.at(-1) as Form<T>)[1]();
  }

  some<T>(list: readonly T[], most: number): T[] {
    const left = [...list];
    return Array.from({ length: this.below(most + 1) }, () => left.splice(this.below(left.length), 1)).flat();
  }

  /** A half second: from a little before the data begins to a little after it ends. */
  time_ms(): number {
    const from = DATA_START_MS - 2 * MINUTE_MS;
    const to = DATA_END_MS + 5 * MINUTE_MS;
    return Math.floor((from + this.#random() * (to - from)) / 1000) * 1000 + 500;
  }

  asked(query: string): Asked {
    const end_ms = this.time_ms();
    if (this.chance(0.5)) return { query, start_ms: end_ms, end_ms };
    const step_ms = this.pick([15, 30, 60, 70, 300]) * 1000;
    return { query, start_ms: end_ms - this.below(60) * step_ms, end_ms, step_ms };
  }
}

/** What is in the data: a metric and the labels that tell its series of one instance apart. */
export interface Metric {
  name: string;
  own: string[];
}

const metric = (name: string, ...own: string[]): Metric => ({ name, own });

export const COUNTERS = [
  metric("svc_app_http_responses_count", "status"),
  metric("svc_instance_cpu", "mode"),
  metric("svc_instance_net_recv_bytes", "device"),
  metric("svc_instance_disk_reads_completed", "device"),
  metric("svc_app_http_response_time_seconds_count", "status"),
  metric("svc_app_http_response_time_seconds_sum", "status"),
];
export const GAUGES = [
  metric("svc_instance_load_average", "minutes"),
  metric("svc_instance_memory_mem_free"),
  metric("svc_instance_memory_cached"),
  metric("svc_instance_up"),
];
export const BUCKETS = metric("svc_app_http_response_time_seconds_bucket", "le", "status");
const METRICS = [...COUNTERS, ...GAUGES, BUCKETS];

/** Labels of every series, and values to match them with: some that are there, some that are not, patterns. */
export const COMMON = ["app", "host", "instance", "region"];
const VALUES: Record<string, [equal: string[], pattern: string[]]> = {
  app: [
    ["app-000", "app-001", "app-9"],
    ["app-00.", ".*1", "app-000|app-001", "app", ".+", "(?i)APP-000"],
  ],
  host: [
    ["0000", "1eef"],
    ["[0-9]+", ".*e.*"],
  ],
  region: [
    ["fra", "iad", "xyz", ""],
    ["fra|iad", "f.*", "[a-h].+", "", "^fra$", "(nrt|gru)"],
  ],
  status: [
    ["200", "404", ""],
    ["2..", "4.*|5.*", "[^2]..", "20[0-4]"],
  ],
  mode: [
    ["user", "idle"],
    ["user|system", ".*i.*"],
  ],
  minutes: [
    ["1", "5"],
    ["1.*", "5|15"],
  ],
  le: [
    ["+Inf", "0.1"],
    ["0\\.0.*", ".*5"],
  ],
  device: [
    ["eth0", "vdb"],
    ["eth.+", "v.*"],
  ],
};

/** Durations are whole seconds, so that windows begin where no sample is. */
export const WINDOWS = ["40s", "1m", "2m", "5m", "7m30s", "10m", "1h", "90s", "20s"];
export const OFFSETS = ["1m", "5m", "90s", "1h", "-2m", "17s"];
/** These begin on a quarter, where neither a query nor a subquery has a step. */
export const SUBQUERIES = ["10m250ms:1m", "5m250ms:30s", "30m250ms:5m", "7m250ms:50s", "2m250ms:15s", "1h250ms:10m"];
export const NUMBERS = ["0", "1", "2", "-1", "0.5", "10", "100", "1e3", "3.7", "-0.25", "1e9"];

export function labelsOf({ own }: Metric): string[] {
  return [...COMMON, ...own];
}

export function anyMetric(c: Choices): Metric {
  return c.pick(METRICS);
}

function matcher(c: Choices, label: string): string {
  const [equal, pattern] = VALUES[label] ?? [[""], [".*"]];
  const op = c.pick(["=", "!=", "=~", "!~"]);
  return `${label}${op}${JSON.stringify(c.pick(op.endsWith("~") ? pattern : equal))}`;
}

/** A selector of one metric, mostly of all its series. */
export function selector(c: Choices, of: Metric = anyMetric(c)): string {
  const labels = labelsOf(of).filter((label) => label in VALUES);
  const matchers = c.chance(0.6) ? [] : c.some(labels, 2).map((label) => matcher(c, label));
  return c.form([
    [10, () => `${of.name}${matchers.length > 0 ? `{${matchers.join(",")}}` : ""}`],
    [1, () => `{${[`__name__="${of.name}"`, ...matchers].join(",")}}`],
    [1, () => `{${[`__name__=~"svc_instance_(load|mem).*"`, ...matchers].join(", ")}}`],
  ]);
}

/** ` by (a, b)`, ` without (a)` or nothing. */
export function grouping(c: Choices, labels: readonly string[] = [...COMMON, "status", "mode", "le"]): string {
  return c.form([
    [3, () => ` by (${c.some(labels, 3).join(", ")})`],
    [1, () => ` without (${c.some(labels, 3).join(", ")})`],
    [1, () => ""],
  ]);
}
