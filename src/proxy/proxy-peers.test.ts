/** Edge proxies of several processes, and a machine that one of them wants to stop. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type VirtualClock, virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Entry } from "#network/directory.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlProxyStore } from "#stores/sql/proxy.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { PROXY_LIMITS } from "./limits.ts";
import { ProxyPeers } from "./proxy-peers.ts";
import type { ProxyStore } from "./store.ts";

interface Peer {
  peers: ProxyPeers;
  uses: Record<string, number>;
  /** Machines to which this peer sends no requests. */
  withdrawn: string[];
}

/** Notifications reach the others at once, never the sender. */
function wires() {
  const listeners = new Map<string, (message: string) => void>();
  return (node_id: string): Notifier => ({
    send: (_channel, message) => {
      for (const [id, listener] of listeners) if (id !== node_id) listener(message);
    },
    listen: (_channel, listener) => {
      listeners.set(node_id, listener);
      return () => listeners.delete(node_id);
    },
    onGap: () => () => {},
    close: async () => {},
  });
}

/** Two machines of one app, known to all peers. */
const MACHINES = new Map(["m1", "m2"].map((id) => [id, { id, app_id: "a1", state: "started" }]));

async function peers(
  ...names: string[]
): Promise<{ all: Peer[]; clock: VirtualClock; store: ProxyStore; state: (id: string, to: string) => void }> {
  const database = inlineSqlite();
  await migrate(database);
  const store = sqlProxyStore(database);
  const clock = virtualClock();
  const notifier = wires();
  const known = new Map([...MACHINES].map(([id, machine]) => [id, { ...machine }]));
  const all = names.map((node_id): Peer => {
    const peer: Pick<Peer, "uses" | "withdrawn"> = { uses: {}, withdrawn: [] };
    const peers = new ProxyPeers({
      node_id,
      store,
      notifier: notifier(node_id),
      clock,
      log: silentLog,
      uses: () => ({ ...peer.uses }),
      find: (id) => known.get(id) as unknown as Entry,
      async withdraw({ id }) {
        peer.withdrawn.push(id);
        return () => void peer.withdrawn.splice(peer.withdrawn.indexOf(id), 1);
      },
    });
    peers.start();
    return Object.assign(peer, { peers });
  });
  for (const { peers } of all) await peers.exchange();
  const state = (id: string, to: string): void => void Object.assign(known.get(id) ?? assert.fail(), { state: to });
  return { all, clock, store, state };
}

const machine = (id: string): Entry => (MACHINES.get(id) ?? assert.fail()) as unknown as Entry;

suite("edge proxies of several processes", () => {
  test("an unused machine may be stopped once all proxies agree, and none routes to it meanwhile", async () => {
    const { all, state } = await peers("n1", "n2", "n3");
    const [one, two, three] = all;
    assert.ok(one && two && three);
    assert.equal(await one.peers.agree(machine("m1")), true);
    assert.deepEqual([two.withdrawn, three.withdrawn], [["m1"], ["m1"]]);
    state("m1", "stopping");
    await one.peers.release("m1");
    await Promise.all([two.peers.exchange(), three.peers.exchange()]);
    assert.deepEqual([two.withdrawn, three.withdrawn], [[], []]);
  });

  test("a machine in recent use through another proxy is not stopped and stays routed", async () => {
    for (const load of [3, 0]) {
      const { all } = await peers("n1", "n2");
      const [one, two] = all;
      assert.ok(one && two);
      // The use is not published yet.
      two.uses["m1"] = load;
      assert.equal(await one.peers.agree(machine("m1")), false);
      assert.deepEqual(two.withdrawn, []);
      assert.equal(one.peers.use("m1"), load, "and now it is known");
      assert.equal(one.peers.use("m2"), undefined);
    }
  });

  test("a machine that was not stopped after all is routed again after a timeout", async () => {
    const { all, clock } = await peers("n1", "n2");
    const [one, two] = all;
    assert.ok(one && two);
    assert.equal(await one.peers.agree(machine("m1")), true);
    await one.peers.release("m1");
    await two.peers.exchange();
    assert.deepEqual(two.withdrawn, ["m1"], "the notification of its stop may still arrive");
    await clock.advance(PROXY_LIMITS.put_back_ms);
    await two.peers.exchange();
    assert.deepEqual(two.withdrawn, []);
  });

  test("of two proxies that each want to stop a machine of an app, only one may", async () => {
    const { all } = await peers("n1", "n2");
    const [one, two] = all;
    assert.ok(one && two);
    const agreed = await Promise.all([one.peers.agree(machine("m1")), two.peers.agree(machine("m2"))]);
    assert.deepEqual(agreed.filter(Boolean).length, 1, String(agreed));
  });

  test("a departed proxy is no longer waited for, and one that never responds blocks no stop for good", async () => {
    const { all, clock, store } = await peers("n1");
    const [one] = all;
    assert.ok(one);
    const state = { uses: {}, resting: {}, quiet: [] };
    await store.putPeerState({ node_id: "n2", word: state, seen_at: clock.now() }, 0);
    const agreed = one.peers.agree(machine("m1"));
    let answer: boolean | undefined;
    void agreed.then((said) => {
      answer = said;
    });
    for (let waited = 0; answer === undefined && waited <= 2 * PROXY_LIMITS.agree_ms; waited += 500)
      await clock.advance(500);
    assert.equal(answer, false, "it may have something for the machine");
    await one.peers.release("m1");
    await clock.advance(PROXY_LIMITS.peer_silent_ms);
    assert.equal(await one.peers.agree(machine("m1")), true);
  });
});
