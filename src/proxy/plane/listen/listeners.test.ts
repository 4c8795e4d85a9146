/** Ports that cannot be opened: how they are reported and retried. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { until } from "../../../../test/support.ts";
import {
  aBackend,
  anAppTable,
  aPlane,
  aPlaneInTime,
  aTarget,
  freePort,
  OPTIONS,
  type TestPlane,
} from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { AppTable, ClosedListener, PortTable } from "../../table.ts";

/** The last report of closed ports; `undefined` before the first. */
const lastReport = ({ reports }: TestPlane): ClosedListener[] | undefined =>
  reports.flatMap((report) => (report.type === "listeners" ? [report.failed] : [])).at(-1);

/** Occupies a port as another program would; returns the function that frees it. */
const HOLDERS = {
  async tcp(port: number) {
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    return () => server.close();
  },
  async udp(port: number) {
    const socket = createSocket("udp4").bind(port, "127.0.0.1");
    await once(socket, "listening");
    return () => socket.close();
  },
};

const aPort = (change: Partial<PortTable>): PortTable => ({
  protocol: "tcp",
  start: 0,
  end: 0,
  options: OPTIONS,
  targets: [],
  startable: [],
  empty: "it has no machines",
  ...change,
});

suite("ports that cannot be opened", () => {
  for (const protocol of ["tcp", "udp"] as const) {
    test(`${protocol}: a port used by another program is reported, retried, and reported once open`, async (t: TestContext) => {
      const listener = await aPlaneInTime(t);
      const port = await freePort();
      const free = await HOLDERS[protocol](port);
      await listener.serve({ port: { protocol, start: port, end: port } });
      const problem = `127.0.0.1 port ${port} is used by another program`;
      assert.deepEqual(lastReport(listener), [{ protocol, address: "127.0.0.1", port, problem }]);
      free();
      listener.later(PROXY_LIMITS.reopen_ms);
      await until("the port is open", () => lastReport(listener)?.length === 0);
      await assert.rejects(HOLDERS[protocol](port), { code: "EADDRINUSE" }, "the plane has it now");
    });
  }

  test("past the limit, apps that share an open port are served, and apps that need a new one are reported", async (t) => {
    const listener = await aPlane(t);
    const backend = await aBackend(t, (_request, response) => response.end("shared"));
    const serve = (name: string, app: Partial<AppTable>): void =>
      listener.plane.apply({ type: "app", app: { ...anAppTable(name, one(listener.port)), ...app } });
    const one = (port: number) => aPort({ start: port, end: port, targets: [aTarget(backend.port)] });
    serve("early", { since: 1 });
    const many = aPort({ protocol: "udp", start: 40_000, end: 40_000 + PROXY_LIMITS.listeners - 2 });
    serve("greedy", { since: 2, shared: false, addresses: ["127.73.0.1"], ports: [many] });
    const port = await freePort();
    serve("late", { since: 3, ports: [one(listener.port), one(port)] });
    await until("the port is reported as closed", () => lastReport(listener)?.length === 1);
    const problem = `127.0.0.1 port ${port} is not open: at most 2048 are, on all addresses together (limit listeners)`;
    assert.deepEqual(lastReport(listener), [{ protocol: "tcp", address: "127.0.0.1", port, problem }]);
    assert.match(await listener.raw("GET / HTTP/1.1\r\nhost: late.localhost\r\nconnection: close\r\n\r\n"), /shared/);
    listener.plane.apply({ type: "no app", app_id: "greedy" });
    assert.deepEqual(lastReport(listener), []);
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "shared");
  });
});
