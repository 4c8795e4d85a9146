import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { same, story, until } from "../node/fixtures.ts";
import { IdentityFile } from "../node/identity.ts";
import { bench } from "./bench.ts";
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

const OPTIONS = { seconds: 0.3, clock: systemClock, synchronous: "NORMAL" } as const;

interface Measured {
  transactions: number;
  lag_ms: Record<string, object>;
}

/** A primary and its replica whose answers a test gives. */
async function answering(t: TestContext, answer: () => void): Promise<string> {
  const server = createServer((_request, response) => {
    answer();
    response.end('{"txid":"0000000000000001"}');
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
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
    const measured = (await bench(found, OPTIONS)) as Measured;
    assert.ok(measured.transactions > 0);
    assert.equal(Object.keys(measured.lag_ms).length, 2);
    await until("it is deleted everywhere", () =>
      [primary, ...replicas].every((running) => !running.node.directory.get("hangar-bench.db")),
    );
  });

  test("bench takes the time of an answer while its writer waits for the lock", async (t) => {
    const path = tempDir();
    const { value } = new IdentityFile(path);
    let application: DatabaseSync | undefined;
    let asked = 0;
    // The first question is before the writer starts. It then waits for the lock until the second one was answered.
    const primary = await answering(t, () => {
      asked++;
      if (asked > 1) return;
      application = new DatabaseSync(join(path, "hangar-bench.db"));
      application.exec("BEGIN IMMEDIATE");
    });
    const replica = await answering(t, () => {
      if (asked > 1 && application?.isTransaction) application.exec("COMMIT");
    });
    const nodes = [node(primary, { isPrimary: true, path, node: value.node }), node(replica)];
    const measured = (await bench({ nodes, primary: nodes[0]?.info }, OPTIONS)) as Measured;
    application?.close();
    assert.ok(asked > 1);
    assert.ok(measured.transactions > 0);
    assert.deepEqual(Object.keys(measured.lag_ms), [replica]);
    assert.deepEqual(readdirSync(path), [".replication"]);
  });

  test("bench on another machine than the primary's says so, and writes nothing", async () => {
    const [missing, foreign] = [join(tempDir(), "missing"), tempDir()];
    new IdentityFile(foreign);
    for (const [path, here] of [
      [missing, "there is no such node in"],
      [foreign, "belongs to another node"],
    ] as const) {
      const nodes = [node("p:1", { isPrimary: true, path }), node("a:1")];
      await assert.rejects(
        bench({ nodes, primary: nodes[0]?.info }, OPTIONS),
        new RegExp(`the primary, p:1, is on another machine \\(.*${here}.*\\): run hangar db bench there`),
      );
    }
    assert.deepEqual(readdirSync(foreign), [".replication"]);
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
