/**
 * `--ack quorum` with real processes: Python applications write through the HTTP proxies, primaries are killed under load,
 * and what a client was answered is on every node. At the end all nodes have the same, byte by byte.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { runs, until } from "../support.ts";
import { appsMissing, sqlite } from "./replication-apps.ts";
import type { Cluster, Member } from "./replication-cluster.ts";
import { post, site } from "./replication-site.ts";
import { samePositionOn } from "./replication-support.ts";

const CLIENTS = 4;
const ANSWERS = 20;

/** Clients that write through these proxies, one request after the other, until they are stopped. */
class Clients {
  readonly acknowledged: string[] = [];
  readonly failed: string[] = [];
  readonly #working: Promise<void>[] = [];
  #stopped = false;
  #name = 0;

  start(proxies: readonly string[]): void {
    this.#stopped = false;
    for (let client = 0; client < CLIENTS; client++) this.#working.push(this.#write(`c${this.#name++}`, proxies));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#working.splice(0));
  }

  /** Waits until clients were answered so many times more. */
  async answered(count: number): Promise<void> {
    const before = this.acknowledged.length;
    await until(`${count} writes are acknowledged`, () => this.acknowledged.length >= before + count);
  }

  async #write(name: string, proxies: readonly string[]): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const id = `${name}-${n}`;
      try {
        const response = await post(proxies[n % proxies.length] ?? "", id, { "idempotency-key": id });
        const text = await response.text();
        if (response.status === 201) this.acknowledged.push(id);
        else this.failed.push(`${id}: ${response.status} ${text}`);
      } catch (error) {
        this.failed.push(`${id}: ${String(error)}`);
      }
    }
  }
}

function assertHas(path: string, ids: readonly string[]): void {
  const has = new Set(sqlite(path, "SELECT id FROM notes").split("\n"));
  const lost = ids.filter((id) => !has.has(id));
  assert.deepEqual(lost, [], "acknowledged and lost");
}

/** What Debian's sqlite3 finds on every member, which is the same, and whole. */
async function assertSame(cluster: Cluster, primary: Member): Promise<void> {
  for (const { port } of cluster.others(primary)) await samePositionOn(primary.port, port);
  const dumps = cluster.members.map((member) => sqlite(cluster.path(member), ".dump"));
  for (const dump of dumps) assert.equal(dump, dumps[0]);
  for (const member of cluster.members) assert.equal(sqlite(cluster.path(member), "PRAGMA integrity_check"), "ok");
}

suite("--ack quorum", { timeout: runs(600_000, 1_800_000), skip: appsMissing() ?? false }, () => {
  test("kill -9 of primaries under load loses no acknowledged write, and all nodes end equal (R10)", async (t) => {
    const { cluster, proxyOf } = await site(t, 3, "--ack", "quorum", "--cluster-size", "3");
    const clients = new Clients();
    const kills = runs(1, 10, 100);
    for (let kill = 0; kill < kills; kill++) {
      const primary = await cluster.whole();
      // Clients of a proxy that is killed itself cannot be helped: they use the others.
      clients.start(cluster.others(primary).map(proxyOf));
      await clients.answered(ANSWERS);
      await cluster.kill(primary);
      const before = clients.acknowledged.length;
      await clients.answered(ANSWERS);
      const next = await cluster.primary();
      assert.notEqual(next, primary);
      assertHas(cluster.path(next), clients.acknowledged.slice(0, before));
      await clients.stop();
      cluster.restart(primary);
    }
    const last = await cluster.whole();
    assert.deepEqual(clients.failed, []);
    await assertSame(cluster, last);
    for (const member of cluster.members) assertHas(cluster.path(member), clients.acknowledged);
    t.diagnostic(`${clients.acknowledged.length} acknowledged, ${kills} kills, 0 lost`);
  });
});
