/** A data plane for tests: in this thread, on loopback, in front of real servers. */
import { createServer, type RequestListener, type Server } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcp,
  type ListenOptions,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import type { TestContext } from "node:test";
import { type Clock, systemClock } from "#core/clock.ts";
import { Plane } from "./plane/plane.ts";
import { Slots } from "./slots.ts";
import type { AppTable, PortOptions, PortTable, Report, Target, TraceSettings } from "./table.ts";
import { selfSigned } from "./x509.ts";

type T = Pick<TestContext, "after">;

export const OPTIONS: PortOptions = {
  http: true,
  tls: false,
  pg_tls: false,
  proxy_protocol: 0,
  force_https: false,
  compress: false,
  h2_backend: false,
  pristine: false,
  headers: [],
  routes: [],
  idle_ms: 0,
  head_ms: 0,
  alpn: [],
  self_signed: false,
  min_version: "TLSv1.2",
  max_version: "TLSv1.3",
  https_port: 443,
};

export function aTarget(port: number, change: Partial<Target> = {}): Target {
  return {
    machine_id: `m${port}`,
    instance_id: "v1",
    region: "local",
    host_id: "0001",
    host: "127.0.0.1",
    port,
    slot: port % 1000,
    mode: "requests",
    soft: 20,
    hard: 1_000_000,
    h2: false,
    ...change,
  };
}

const PORTS = { first: 20_000, count: 12_000 };
let ports = 0;

/**
 * Reserves a free port below the kernel's ephemeral range, for the lifetime of this process, by an abstract socket
 * name. Listeners share their ports (SO_REUSEPORT), so two tests with the same port would not notice; and a killed
 * listener must reopen the same one.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + ((process.pid * 61 + ports++) % PORTS.count);
    // An abstract socket: the kernel removes it when the process ends.
    if (!(await listens(createTcp().unref(), { path: `\0hangar-test-port-${port}` }))) continue;
    const server = createTcp();
    if (!(await listens(server, { port, host: "127.0.0.1" }))) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

async function listens(server: TcpServer, where: ListenOptions): Promise<boolean> {
  return await new Promise((resolve) => {
    server.once("listening", () => resolve(true));
    server.once("error", () => resolve(false));
    server.listen(where);
  });
}

export interface TestPlane {
  plane: Plane;
  slots: Slots;
  port: number;
  reports: Report[];
  /** Serves an app, with defaults for omitted fields. */
  serve(change: {
    app?: Partial<AppTable>;
    port?: Partial<PortTable>;
    options?: Partial<PortOptions>;
    targets?: Target[];
  }): Promise<void>;
  /** Sends raw bytes and returns everything received until the end. */
  raw(bytes: string | Buffer, wait?: (so_far: string) => boolean): Promise<string>;
}

/** An app with one open port, under its own name. */
export const anAppTable = (name: string, port: PortTable): AppTable => ({
  app_id: name,
  app_name: name,
  org_id: "o1",
  hostnames: [`${name}.localhost`],
  reserved: [],
  shared: true,
  addresses: [],
  since: 1,
  ports: [port],
  statics: [],
});

export async function aPlane(t: T, clock: Clock = systemClock, traces?: TraceSettings): Promise<TestPlane> {
  const port = await freePort();
  const slots = new Slots();
  const reports: Report[] = [];
  const plane = new Plane(
    {
      worker: 0,
      listen_host: "127.0.0.1",
      slots: slots.buffer,
      monotonic_ms: clock.monotonic(),
      fallback: selfSigned(["localhost"], systemClock.now()),
      ticket_keys: new Uint8Array(48),
      region: "local",
      host_id: "0001",
      buckets: undefined,
      traces,
    },
    { clock, report: (report) => void reports.push(report) },
  );
  t.after(() => plane.close());
  const serve: TestPlane["serve"] = async ({ app, port: change, options, targets }) => {
    const table: PortTable = {
      protocol: "tcp",
      start: port,
      end: port,
      options: { ...OPTIONS, ...options },
      targets: targets ?? [],
      startable: [],
      empty: "it has no machines",
      ...change,
    };
    const name = app?.app_name ?? "web";
    plane.apply({ type: "app", app: { ...anAppTable(name, table), ...app } });
    const before = reports.length;
    plane.apply({ type: "ready?", id: 1 });
    while (!reports.slice(before).some(({ type }) => type === "ready"))
      await new Promise((resolve) => setImmediate(resolve));
  };
  return { plane, slots, port, reports, serve, raw: (bytes, wait) => raw(port, bytes, wait) };
}

/** The same, with a movable clock. */
export async function aPlaneInTime(t: T): Promise<TestPlane & { later(ms: number): void }> {
  let ahead_ms = 0;
  const plane = await aPlane(t, { ...systemClock, monotonic: () => systemClock.monotonic() + ahead_ms });
  const later = (ms: number): void => {
    ahead_ms += ms;
  };
  return { ...plane, later };
}

async function raw(port: number, bytes: string | Buffer, wait?: (so_far: string) => boolean): Promise<string> {
  const socket: Socket = connect({ port, host: "127.0.0.1" });
  let text = "";
  return await new Promise((resolve, reject) => {
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (wait?.(text)) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNRESET" ? resolve(text) : reject(error)));
    socket.write(bytes, "latin1");
  });
}

/** A real HTTP server in place of a machine. */
export async function aBackend(t: T, listener: RequestListener): Promise<{ port: number; server: Server }> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, server };
}
