import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { random, runs, seed } from "../../../test/support.ts";
import { type AckMode, InSyncReplicas } from "./in-sync-replicas.ts";

const ONE: AckMode = { name: "one", replicas: 1 };
const QUORUM_OF_FIVE: AckMode = { name: "quorum", replicas: 2 };
const settled = (): Promise<void> => new Promise((turn) => setImmediate(turn));

/** A primary's view of its replicas, and the actual state: what each has on disk, and what the lease store lists. */
class World {
  now_ms = 0;
  listed: readonly string[] = ["self"];
  readonly on_disk = new Map<string, number>();
  /** Answers that the lease store has not given yet. */
  readonly answers: (() => void)[] = [];
  #version = 0;
  #stored = 0;
  readonly replicas: InSyncReplicas;

  constructor(mode: AckMode, next: () => number) {
    const clock = { ...systemClock, monotonic: () => this.now_ms };
    this.replicas = new InSyncReplicas({
      mode,
      self: "self",
      clock,
      onAcknowledged: () => undefined,
      log: () => undefined,
    });
    this.replicas.begin(1);
    this.replicas.publish = (nodes) => this.#publish(nodes, next);
  }

  /** The store takes a list, or not, sooner or later, and what it answers may be lost. A newer list is not replaced. */
  async #publish(nodes: readonly string[], next: () => number): Promise<boolean> {
    const version = ++this.#version;
    const outcome = next();
    const take = (): void => {
      if (version > this.#stored) [this.listed, this.#stored] = [nodes, version];
    };
    if (outcome < 0.15) {
      // The answer does not come: it was taken, or will be, or never.
      if (outcome < 0.05) take();
      else if (outcome < 0.1) this.answers.push(take);
      throw new Error("the lease store does not answer");
    }
    await new Promise<void>((done) => {
      this.answers.push(() => {
        take();
        done();
      });
    });
    return true;
  }

  pass(ms: number): void {
    this.now_ms += ms;
  }

  ack(node: string, txid: number): void {
    this.on_disk.set(node, Math.max(txid, this.on_disk.get(node) ?? 0));
    this.replicas.acked(node, "db", txid);
  }

  /** What is acknowledged is on every node that could be elected now, and on enough of them. */
  check({ replicas: enough }: AckMode, what: string): void {
    const acknowledged = this.replicas.upTo("db");
    if (acknowledged === 0) return;
    for (const node of this.listed) {
      if (node === "self") continue;
      assert.ok((this.on_disk.get(node) ?? 0) >= acknowledged, `${what}: ${node} lacks ${acknowledged}`);
    }
    const copies = [...this.on_disk.values()].filter((txid) => txid >= acknowledged).length;
    assert.ok(copies >= enough, `${what}: ${acknowledged} is on ${copies}`);
  }
}

suite("in-sync replicas", () => {
  for (const mode of [ONE, QUORUM_OF_FIVE]) {
    test(`--ack ${mode.name}: every electable node has the acknowledged transactions, whatever fails (R10)`, async (t) => {
      const next = random(seed(t));
      let acknowledged = 0;
      for (let run = 0; run < runs(60, 2000); run++) {
        const world = new World(mode, next);
        const nodes = ["a", "b", "c", "d"];
        const late = new Set<string>();
        let durable = 1;
        const pick = (): string => nodes[Math.floor(next() * nodes.length)] ?? "a";
        const happenings: (() => void)[] = [
          () => world.replicas.connected(pick(), next() < 0.9),
          () => world.replicas.ready(pick()),
          () => world.replicas.disconnected(pick()),
          () => world.ack(pick(), Math.ceil(next() * durable)),
          () => world.ack(pick(), durable),
          () => world.ack(pick(), durable),
          () => void durable++,
          () => void late.add(pick()),
          () => late.clear(),
          () => world.replicas.look(late),
          () => world.replicas.look(late),
          () => world.answers.splice(Math.floor(next() * world.answers.length), 1)[0]?.(),
          () => world.pass(500),
        ];
        for (let step = 0; step < 200; step++) {
          happenings[Math.floor(next() * happenings.length)]?.();
          world.check(mode, `run ${run}, step ${step}`);
          await settled();
          world.check(mode, `run ${run}, step ${step}, settled`);
        }
        acknowledged += world.replicas.upTo("db");
      }
      assert.ok(acknowledged > 0, "something was acknowledged");
    });
  }

  test("a slow replica is dropped once the store knows, and joins again when it has caught up", async () => {
    const world = new World(ONE, () => 1);
    const answer = async (): Promise<void> => {
      await settled();
      world.answers.shift()?.();
      await settled();
    };
    for (const node of ["a", "b"]) {
      world.replicas.connected(node, true);
      world.replicas.ready(node);
    }
    world.replicas.look(new Set());
    await answer();
    assert.deepEqual(world.listed, ["self", "a", "b"]);
    world.ack("a", 1);
    assert.equal(world.replicas.upTo("db"), 0, "b is waited for");
    world.replicas.look(new Set(["b"]));
    assert.equal(world.replicas.upTo("db"), 0, "the store still lists b");
    await answer();
    assert.deepEqual([world.listed, world.replicas.upTo("db")], [["self", "a"], 1]);
    world.replicas.look(new Set());
    world.ack("a", 2);
    assert.equal(world.replicas.upTo("db"), 1, "b is back, and waited for");
    world.ack("b", 2);
    await answer();
    assert.deepEqual([world.listed, world.replicas.upTo("db")], [["self", "a", "b"], 2]);
  });

  test("with a fixed primary a transaction is acknowledged when enough replicas have it", () => {
    const world = new World(QUORUM_OF_FIVE, () => 1);
    world.replicas.publish = undefined;
    for (const node of ["a", "b", "c"]) world.replicas.connected(node, true);
    world.ack("a", 5);
    assert.equal(world.replicas.upTo("db"), 0);
    world.ack("b", 3);
    assert.equal(world.replicas.upTo("db"), 3);
    world.ack("c", 9);
    assert.equal(world.replicas.upTo("db"), 5);
  });
});
