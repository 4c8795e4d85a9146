/**
 * The data every engine is measured on: instances × 50 series that look like a platform's own metrics
 * (request counters, a latency histogram, processor, memory, load, network, disk), 1,440 points 15 s apart.
 * The same numbers on every run: each instance has its own seeded generator.
 */
import { random } from "../../test/support.ts";

export const STEP_MS = 15_000;
export const POINTS = 1440;
export const SERIES_PER_INSTANCE = 50;
/** A whole minute, so that query grids fall on samples. */
export const START_MS = 1_700_000_040_000;
export const END_MS = START_MS + (POINTS - 1) * STEP_MS;

const REGIONS = ["fra", "iad", "nrt", "gru", "syd"];
const STATUSES = ["200", "201", "204", "301", "302", "400", "404", "500", "502", "503"];
const BOUNDS = ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"];
const MODES: [string, number][] = [
  ["user", 200],
  ["nice", 0],
  ["system", 80],
  ["idle", 1200],
  ["iowait", 3],
  ["irq", 0],
  ["softirq", 0],
  ["steal", 3],
];
const PAGE_BYTES = 4096;

export interface Generated {
  /** Sorted by name. */
  labels: [string, string][];
  next(): number;
}

type Add = (name: string, extra: Record<string, string>, next: () => number) => void;

/** All series of one instance; each call of every `next` in order is one scrape. */
export function instanceSeries(instance: number): Generated[] {
  const roll = random(instance + 1);
  const base = {
    app: `app-${String(instance >> 1).padStart(3, "0")}`,
    host: ((instance * 7919) & 0xffff).toString(16).padStart(4, "0"),
    instance: (0x3d8d000000000 + instance * 104_729).toString(16),
    region: REGIONS[instance % REGIONS.length] ?? "",
  };
  const made: Generated[] = [];
  const add: Add = (name, extra, next) => {
    const labels = Object.entries({ __name__: name, ...base, ...extra }).sort(([a], [b]) => (a < b ? -1 : 1));
    made.push({ labels, next });
  };
  const requests_per_step = 15 * (1 + (instance % 7) * 3);
  addResponses(add, roll, requests_per_step);
  addLatency(add, roll, requests_per_step);
  addMachine(add, roll);
  return made;
}

function addResponses(add: Add, roll: () => number, requests_per_step: number): void {
  STATUSES.forEach((status, k) => {
    let total = Math.floor(roll() * 1e6);
    const mean = k === 0 ? requests_per_step : requests_per_step / (k * k * 4);
    add("svc_app_http_responses_count", { status, proxy_id: "blue" }, () => {
      const exact = mean * (0.5 + roll());
      total += roll() < exact % 1 ? Math.ceil(exact) : Math.floor(exact);
      return total;
    });
  });
}

function addLatency(add: Add, roll: () => number, requests_per_step: number): void {
  const counts = BOUNDS.map(() => 0);
  let sum = 0;
  const observe = (): void => {
    for (let n = Math.floor(requests_per_step * (0.5 + roll())); n > 0; n--) {
      const seconds = 0.002 / (roll() + 0.0005);
      sum += seconds;
      BOUNDS.forEach((bound, k) => {
        if (bound === "+Inf" || seconds <= Number(bound)) counts[k] = (counts[k] ?? 0) + 1;
      });
    }
  };
  BOUNDS.forEach((le, k) => {
    add("svc_app_http_response_time_seconds_bucket", { le, status: "200" }, () => {
      if (k === 0) observe();
      return counts[k] ?? 0;
    });
  });
  add("svc_app_http_response_time_seconds_sum", { status: "200" }, () => sum);
  add("svc_app_http_response_time_seconds_count", { status: "200" }, () => counts.at(-1) ?? 0);
}

function addMachine(add: Add, roll: () => number): void {
  const counter = (name: string, extra: Record<string, string>, grow: () => number, first: number): void => {
    let total = Math.floor(roll() * first);
    add(name, extra, () => {
      total += Math.floor(grow());
      return total;
    });
  };
  for (const [mode, weight] of MODES) {
    counter("svc_instance_cpu", { cpu_id: "0", mode }, () => weight * (0.8 + 0.4 * roll()), 1e7);
  }
  for (const kind of ["mem_total", "mem_free", "mem_available", "cached", "buffers", "active"]) {
    let bytes = 256e6 + Math.floor(roll() * 1e5) * PAGE_BYTES;
    add(`svc_instance_memory_${kind}`, {}, () => {
      if (kind !== "mem_total") bytes = Math.max(PAGE_BYTES, bytes + Math.floor((roll() - 0.5) * 400) * PAGE_BYTES);
      return bytes;
    });
  }
  for (const minutes of ["1", "5", "15"]) {
    let load = roll() * 2;
    add("svc_instance_load_average", { minutes }, () => {
      load = Math.max(0, load + ((roll() - 0.5) * 0.2) / Number(minutes));
      return Math.round(load * 100) / 100;
    });
  }
  for (const kind of ["recv_bytes", "sent_bytes", "recv_packets", "sent_packets"]) {
    const most = kind.endsWith("bytes") ? 5e6 : 4e3;
    counter(`svc_instance_net_${kind}`, { device: "eth0" }, () => most * roll(), 1e9);
  }
  for (const kind of ["reads_completed", "writes_completed", "sectors_read", "sectors_written"]) {
    counter(`svc_instance_disk_${kind}`, { device: "vdb" }, () => (roll() < 0.5 ? 0 : 100 * roll()), 1e6);
  }
  add("svc_instance_up", {}, () => 1);
}
