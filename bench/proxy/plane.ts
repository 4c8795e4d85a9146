/** The data plane alone, one worker, for measuring: `plane.ts PORT TLS_PORT UPSTREAM_PORT [TRACES_RATIO]`. */
import { systemClock } from "#core/clock.ts";
import { aTarget, OPTIONS } from "#proxy/fixtures.ts";
import { Plane } from "#proxy/plane/plane.ts";
import { Slots } from "#proxy/slots.ts";
import type { PortTable } from "#proxy/table.ts";
import { selfSigned } from "#proxy/x509.ts";

const [port = 0, tls_port = 0, upstream = 0, ratio] = process.argv.slice(2).map(Number);
const plane = new Plane(
  {
    worker: 0,
    listen_host: "127.0.0.1",
    slots: new Slots().buffer,
    monotonic_ms: systemClock.monotonic(),
    fallback: selfSigned(["localhost"], systemClock.now()),
    ticket_keys: new Uint8Array(48),
    region: "local",
    host_id: "0001",
    buckets: undefined,
    traces: ratio === undefined ? undefined : { ratio },
  },
  {
    clock: systemClock,
    report({ type }) {
      if (type === "ready") process.stdout.write("ready\n");
    },
  },
);
const table = (start: number, tls: boolean): PortTable => ({
  protocol: "tcp",
  start,
  end: start,
  options: { ...OPTIONS, tls },
  // As an app gets it that says nothing about its concurrency.
  targets: [aTarget(upstream, { mode: "connections" })],
  startable: [],
  empty: "",
});
const place = { hostnames: ["web.localhost"], reserved: [], shared: true, addresses: [], since: 1 };
const app = { app_id: "web", app_name: "web", org_id: "o1", ...place, statics: [] };
plane.apply({ type: "app", app: { ...app, ports: [table(port, false), table(tls_port, true)] } });
plane.apply({ type: "ready?", id: 1 });
