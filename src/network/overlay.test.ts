/** Routes between hosts are derived from the store; of the tunnel only the routes that it is given are checked. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { LocalBus } from "#core/bus.ts";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { aMachine } from "#machines/fixtures.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import { Directory } from "./directory.ts";
import { NETWORK_LIMITS } from "./limits.ts";
import { OverlayNetwork, type Peer, platformAddress, type RemotePeer } from "./overlay.ts";

const silentWire: Notifier = { send() {}, listen: () => () => {}, onGap: () => () => {}, close: async () => {} };
const OWN = "00000000000000a1";
const OTHER = "00000000000000b2";

const machine = (id: string, host_id: string, network = "1:2"): Machine =>
  aMachine({ id, host_id, state: "started", private_ip: `fdaa:${network}:${host_id}:0:0:0:${id}` });

async function anOverlay(t: TestContext, machines: readonly Machine[]) {
  const bus = new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() });
  const directory = new Directory({ store: { aliveAnywhere: async () => machines } as unknown as MachineStore, bus });
  await directory.start();
  const clock = virtualClock();
  const peers = new Map<string, Peer>([[OTHER, { node_id: OTHER, underlay: "10.0.0.2", seen_at: 0, block: 3 }]]);
  const applied: (readonly RemotePeer[])[] = [];
  const broken = { value: false };
  const overlay = new OverlayNetwork({
    node_id: OWN,
    underlay: "10.0.0.1",
    own: ["aaaa"],
    directory,
    store: {
      peers: async () => [...peers.values()],
      announce: async (peer) => void peers.set(peer.node_id, { ...peer, block: null }),
      takeBlock: async () => undefined,
    },
    hosts: async () => [
      { id: "aaaa", node_id: OWN },
      { id: "bbbb", node_id: OTHER },
    ],
    tunnel: {
      async keep(ends) {
        if (broken.value) throw new Error("the kernel says no");
        applied.push(ends);
      },
      remove: async () => {},
    },
    notifier: silentWire,
    clock,
    log: silentLog,
  });
  t.after(async () => {
    await overlay.close();
    directory.close();
  });
  const say = (one: Machine): void =>
    bus.publish(topics.every, { machine: one, events: [] } as unknown as MachineUpdate);
  return { overlay, clock, applied, peers, say, broken };
}

suite("overlay network between hosts", () => {
  test("there is a route to each network on each other host, and none to local ones", async (t) => {
    const { overlay, applied, peers } = await anOverlay(t, [
      machine("1", "aaaa"),
      machine("2", "bbbb"),
      machine("3", "bbbb"),
      machine("4", "bbbb", "7:8"),
      machine("5", "cccc"),
    ]);
    await overlay.start();
    const address = platformAddress(OTHER);
    const nets = ["fdaa:1:2:bbbb::/64", "fdaa:7:8:bbbb::/64"];
    assert.deepEqual(applied, [[{ node_id: OTHER, underlay: "10.0.0.2", address, nets, net4: "100.65.128.0/17" }]]);
    assert.equal(peers.get(OWN)?.underlay, "10.0.0.1", "the process publishes its underlay address");
  });

  test("the first machine of a network on a host adds a route; another one there changes nothing", async (t) => {
    const { overlay, applied, clock, say } = await anOverlay(t, []);
    await overlay.start();
    say(machine("2", "bbbb"));
    await clock.advance(NETWORK_LIMITS.overlay_gather_ms);
    assert.deepEqual(applied.at(-1)?.[0]?.nets, ["fdaa:1:2:bbbb::/64"]);
    const updates = applied.length;
    say(machine("3", "bbbb"));
    await clock.advance(NETWORK_LIMITS.overlay_gather_ms * 2);
    assert.equal(applied.length, updates);
  });

  test("failed route updates are retried at the next pass, and routes of departed hosts are removed", async (t) => {
    const { overlay, applied, clock, peers, broken } = await anOverlay(t, [machine("2", "bbbb")]);
    await overlay.start();
    broken.value = true;
    peers.delete(OTHER);
    await clock.advance(NETWORK_LIMITS.peer_beat_ms * 2);
    assert.equal(applied.length, 1);
    broken.value = false;
    await clock.advance(NETWORK_LIMITS.peer_beat_ms * 2);
    assert.deepEqual(applied.at(-1), []);
  });

  test("a process's own address is in no organization's network", () => {
    assert.equal(platformAddress("0001a2b300000042"), "fdaa:0:0:1:1:a2b3:0:42");
  });
});
