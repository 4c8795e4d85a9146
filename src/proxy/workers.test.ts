import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { anAppTable, freePort, OPTIONS } from "./fixtures.ts";
import { Slots } from "./slots.ts";
import type { AppTable, Report } from "./table.ts";
import { Workers } from "./workers.ts";
import { selfSigned } from "./x509.ts";

const anApp = (name: string, port: number): AppTable =>
  anAppTable(name, {
    protocol: "tcp",
    start: port,
    end: port,
    options: OPTIONS,
    targets: [],
    startable: [],
    empty: "none",
  });

/** One real thread that serves the app `one`. */
async function aWorker(
  t: TestContext,
  change: { most?: number } = {},
): Promise<{ workers: Workers; port: number; reports: Report[] }> {
  const fallback = selfSigned(["localhost"], systemClock.now());
  const host = { listen_host: "127.0.0.1", region: "local", host_id: "0001" };
  const reports: Report[] = [];
  const workers = new Workers({
    settings: { ...host, fallback, buckets: undefined, traces: undefined },
    count: 1,
    ...change,
    slots: new Slots(),
    clock: systemClock,
    log: silentLog,
    keepColour: async () => {},
    onReport: (report) => void reports.push(report),
  });
  t.after(() => workers.close());
  const port = await freePort();
  workers.setApp(anApp("one", port));
  await workers.settled();
  return { workers, port, reports };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const drained = (reports: readonly Report[]): number => reports.filter(({ type }) => type === "drained").length;

suite("proxy worker reload", () => {
  test("new workers know the changes made while they started", async (t) => {
    const { workers, port, reports } = await aWorker(t);
    const reloading = workers.reload();
    await turn();
    workers.setApp(anApp("two", port));
    await reloading;
    while (drained(reports) < 1) await turn();
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
    // A request by address goes to the only app there is; with two apps, to none.
    assert.equal(answer.headers.get("svc-reason"), "unknown_host");
  });

  test("two concurrent reloads leave one generation of workers", { timeout: 60_000 }, async (t) => {
    const { workers, reports } = await aWorker(t);
    await Promise.all([workers.reload(), workers.reload()]);
    while (drained(reports) < 2) await turn();
    assert.equal(workers.running, 1);
  });

  test("serving workers stay while earlier ones still drain", { timeout: 60_000 }, async (t) => {
    const { workers, port } = await aWorker(t, { most: 2 });
    const [first, second] = [workers.reload(), workers.reload()];
    await first;
    assert.equal(workers.running, 1);
    await second;
    assert.equal(workers.running, 1);
    assert.equal((await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } })).status, 503);
  });
});
