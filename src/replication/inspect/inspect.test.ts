import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test } from "node:test";
import { Worker } from "node:worker_threads";
import { systemClock } from "#core/clock.ts";
import { same, story, until } from "../node/fixtures.ts";
import { examine, examineFolder } from "./doctor.ts";
import { type NodeInfo, type Surveyed, statusOf, survey } from "./survey.ts";

const at = (txid: number): string => `${txid.toString(16).padStart(16, "0")}/${"8".padEnd(16, "0")}`;

const node = (hostname: string, more: Partial<NodeInfo> = {}): Surveyed & { info: NodeInfo } => ({
  hostname,
  info: {
    node: hostname,
    hostname,
    isPrimary: false,
    term: 3,
    path: "/data",
    lagMs: 5,
    replicas: [],
    databases: { db: at(10) },
    states: {},
    primary: { hostname: "p:1" },
    ...more,
  },
});

const whats = (nodes: Surveyed[]): string[] => {
  const primary = nodes.find(({ info }) => info?.isPrimary)?.info;
  return examine({ nodes, primary }).map(({ level, node, what }) => `${level} ${node} ${what}`);
};

async function benchInThread(url: string): Promise<{ transactions: number; lag_ms: object }> {
  const thread = new Worker(new URL("./bench-thread.fixtures.ts", import.meta.url), { workerData: url });
  const [measured] = (await once(thread, "message")) as [{ transactions: number; lag_ms: object }];
  return measured;
}

suite("hangar db status, doctor and bench", () => {
  story("all nodes are found from any of them, and bench measures them and cleans up", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const replicas = [
      await scene.start(scene.dir(), { kind: "join", url: primary.url }),
      await scene.start(scene.dir(), { kind: "join", url: primary.url }),
    ];
    await scene.app(here);
    for (const replica of replicas) await until("it follows", same(primary, replica));
    const found = await survey([replicas[1]?.url ?? ""], systemClock);
    assert.deepEqual(
      found.nodes.map(({ hostname }) => hostname).sort(),
      [primary, ...replicas].map(({ url }) => new URL(url).host).sort(),
    );
    assert.equal(found.primary?.hostname, new URL(primary.url).host);
    assert.deepEqual(
      statusOf(found)
        .map((line) => (line as { role: string }).role)
        .sort(),
      ["primary", "replica", "replica"],
    );
    assert.deepEqual(examine(found), []);
    const measured = await benchInThread(primary.url);
    assert.ok(measured.transactions > 0);
    assert.equal(Object.keys(measured.lag_ms).length, 2);
    await until("it is deleted everywhere", () =>
      [primary, ...replicas].every((running) => !running.node.directory.get("hangar-bench.db")),
    );
  });

  test("the doctor names each problem and its fix", () => {
    const ack = { mode: "one", replicas: 1, inSync: ["a:1"], acknowledged: {} };
    const primary = (more: Partial<NodeInfo> = {}): Surveyed =>
      node("p:1", { isPrimary: true, replicas: [{ node: "a:1", hostname: "a:1" }], ack, ...more });
    assert.deepEqual(whats([primary(), node("a:1")]), []);
    assert.match(whats([node("a:1", { databases: {} })])[0] ?? "", /problem - no node is primary/);
    assert.match(
      whats([primary(), node("a:1"), { hostname: "b:1", problem: "refused" }])[0] ?? "",
      /b:1 does not respond/,
    );
    assert.match(
      whats([primary(), node("a:1", { isPrimary: true, term: 2 })])[0] ?? "",
      /primary of term 2, which is over/,
    );
    assert.match(whats([primary(), node("a:1", { isPrimary: true })])[0] ?? "", /as another one does/);
    assert.match(
      whats([primary(), node("a:1", { lagMs: 4000 })])[0] ?? "",
      /warning a:1 is 4000 ms and 0 transactions behind/,
    );
    assert.match(
      whats([primary(), node("a:1"), node("b:1", { databases: {} })]).join(),
      /b:1 does not follow .* 10 transactions behind.* b:1 is not in sync/,
    );
    assert.match(
      whats([primary({ replicas: [], ack: { ...ack, inSync: [] } })]).join(),
      /has no replica.*nothing is acknowledged/,
    );
    const stuck = { db: { state: "busy", reason: "an application holds the write lock" } };
    assert.match(whats([primary({ states: stuck }), node("a:1")])[0] ?? "", /problem p:1 db is busy/);
    assert.match(examineFolder("/nowhere", [])[0]?.what ?? "", /ENOENT/);
    assert.equal(examineFolder("/proc", [])[0]?.level ?? "warning", "warning");
  });
});
