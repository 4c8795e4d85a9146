/** Made-up traffic of machines that run nothing: what the proxy would have counted for those that serve. */
import type { Clock } from "#core/clock.ts";
import type { BuiltinSample, Machines, MeasuredMachine, SampleProvider } from "#metrics/builtin/sources.ts";
import { SimReadings } from "./stats.ts";

const STATUSES: readonly [status: string, share: number][] = [
  ["200", 0.9],
  ["304", 0.05],
  ["404", 0.04],
  ["500", 0.01],
];
/** Upper bounds in seconds, and the fraction of requests within them. */
const LATENCIES: readonly [le: string, part: number][] = [
  ["0.005", 0.2],
  ["0.01", 0.45],
  ["0.025", 0.7],
  ["0.05", 0.85],
  ["0.1", 0.93],
  ["0.25", 0.97],
  ["0.5", 0.99],
  ["1", 0.999],
  ["+Inf", 1],
];

type Emit = (name: string, value: number, extra?: Record<string, string>) => void;

export function simTraffic({ clock, machines }: { clock: Clock; machines: Machines }): SampleProvider {
  return async () => {
    const samples: BuiltinSample[] = [];
    const edges = new Set<string>();
    for (const machine of (await machines()).filter(({ serves }) => serves)) {
      const { app, region, host, instance } = machine;
      const temper = new SimReadings(machine, clock.now());
      emitApp(emitter(samples, machine, { app, region, host, instance, proxy_id: "blue" }), temper);
      // The edge has no machine: the first one of an app stands for it.
      if (edges.has(app)) continue;
      edges.add(app);
      emitEdge(emitter(samples, machine, { app, region, host, proxy_id: "blue" }), temper);
    }
    return samples;
  };
}

function emitter(into: BuiltinSample[], { org_id }: MeasuredMachine, labels: Record<string, string>): Emit {
  return (name, value, extra) => {
    into.push({ org_id, name, labels: extra ? { ...labels, ...extra } : labels, value });
  };
}

function emitApp(emit: Emit, temper: SimReadings): void {
  emitRequests(emit, "app", temper);
  const connects = temper.counter("connects", 2);
  emit("svc_app_concurrency", Math.round(temper.gauge("concurrency", 4, 0.8)));
  emitHistogram(emit, "svc_app_connect_time_seconds", connects, 0.002);
  emit("svc_app_tcp_connects_count", connects);
  emit("svc_app_tcp_disconnects_count", Math.max(0, connects - 3));
}

function emitEdge(emit: Emit, temper: SimReadings): void {
  emitRequests(emit, "edge", temper);
  const connects = temper.counter("edge connects", 5);
  emit("svc_edge_tcp_connects_count", connects);
  emit("svc_edge_tcp_disconnects_count", Math.max(0, connects - 5));
  emit("svc_edge_data_out", temper.counter("edge out", 50_000));
  emit("svc_edge_data_in", temper.counter("edge in", 8000));
  emit("svc_edge_tls_handshake_errors", temper.counter("handshake errors", 0.01), { servername: "wrong.example" });
  emitHistogram(emit, "svc_edge_tls_handshake_time_seconds", connects, 0.004, { version: "1.3" });
}

function emitRequests(emit: Emit, kind: "app" | "edge", temper: SimReadings): void {
  const requests = temper.counter("requests", 20);
  for (const [status, share] of STATUSES) {
    const count = Math.floor(requests * share);
    emit(`svc_${kind}_http_responses_count`, count, { status });
    emitHistogram(emit, `svc_${kind}_http_response_time_seconds`, count, 0.03, { status });
  }
}

function emitHistogram(
  emit: Emit,
  name: string,
  count: number,
  mean_s: number,
  extra: Record<string, string> = {},
): void {
  for (const [le, part] of LATENCIES) emit(`${name}_bucket`, Math.floor(count * part), { ...extra, le });
  emit(`${name}_sum`, count * mean_s, extra);
  emit(`${name}_count`, count, extra);
}
