import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { LocalBus } from "#core/bus.ts";
import { systemClock } from "#core/clock.ts";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { silentLog } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { aMachine } from "#machines/fixtures.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { Machine } from "#machines/types.ts";
import { until } from "../../test/support.ts";
import { EgressEnforcer } from "./egress-enforcer.ts";

const NONE: EgressPolicy = { mode: "none", allow: [] };
const LIST: EgressPolicy = { mode: "list", allow: ["api.example.com:443"] };

/** Notifiers of two processes: each receives what the other sends. */
function wires(): [Notifier, Notifier] {
  const listeners: Map<string, (word: string) => void>[] = [new Map(), new Map()];
  const one = (own: number): Notifier => ({
    send: (channel, word) => listeners[1 - own]?.get(channel)?.(word),
    listen: (channel, listener) => {
      listeners[own]?.set(channel, listener);
      return () => {};
    },
    onGap: () => () => {},
    close: async () => {},
  });
  return [one(0), one(1)];
}

const running = (change: Partial<Machine> = {}): Machine =>
  aMachine({ state: "started", started_at: 1, app_id: "a1", host_id: "0001", ...change });

async function aKeeper(t: TestContext, { alive, notifier }: { alive: Machine[]; notifier?: Notifier }) {
  const bus = new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() });
  const policies = new Map<string, EgressPolicy>();
  const applied: [string, EgressPolicy][] = [];
  const admitted: [string, string, string[]][] = [];
  const keeper = new EgressEnforcer({
    host_ids: ["0001"],
    store: { alive: async () => alive },
    apps: { egress: async (id) => policies.get(id) ?? { mode: "all", allow: [] } },
    driver: {
      setEgress: async (id, egress) => void applied.push([id, egress]),
      admitName: async (id, name, found) => void admitted.push([id, name, found.map(({ address }) => address)]),
    },
    opened: [],
    bus,
    notifier,
    clock: systemClock,
    log: silentLog,
  });
  t.after(() => keeper.close());
  await keeper.start();
  return { keeper, bus, policies, applied, admitted };
}

suite("egress policies of running machines", () => {
  test("a machine gets its app's policy when it starts, and again when that changes", async (t) => {
    const { keeper, bus, policies, applied } = await aKeeper(t, { alive: [running({ id: "1" })] });
    await until("the running machine gets the policy", async () => applied.length === 1);
    policies.set("a1", NONE);
    keeper.changed("a1");
    await until("it gets the changed policy", async () => applied.length === 2);
    assert.deepEqual(applied[1], ["1", NONE]);
    bus.publish(topics.host("0001"), { machine: running({ id: "2", app_id: "a2" }), events: [] });
    await until("the new machine gets its policy", async () => applied.length === 3);
    keeper.changed("a1");
    await until("only machines of the app get the policy", async () => applied.length === 4);
    assert.equal(applied[3]?.[0], "1");
  });

  test("a policy change in another process is applied here", async (t) => {
    const [here, there] = wires();
    const { policies, applied } = await aKeeper(t, { alive: [running({ id: "1" })], notifier: here });
    const control = await aKeeper(t, { alive: [], notifier: there });
    await until("the machine gets its first policy", async () => applied.length === 1);
    policies.set("a1", LIST);
    control.keeper.changed("a1");
    await until("and the changed one", async () => applied.length === 2);
    assert.deepEqual(applied[1], ["1", LIST]);
  });

  test("DNS names are allowed by the policy, and blocked ranges are left out of their addresses", async (t) => {
    const { keeper, policies, admitted } = await aKeeper(t, { alive: [] });
    const [machine, name] = [running({ id: "1" }), "api.example.com"];
    assert.equal(await keeper.mayAsk(machine, name), true);
    policies.set("a1", LIST);
    keeper.changed("a1");
    assert.equal(await keeper.mayAsk(machine, name), true);
    assert.equal(await keeper.mayAsk(machine, "data.evil.example"), false);
    const found = ["192.0.2.7", "169.254.169.254", "10.0.0.1", "fd00:ec2::254", "2001:db8::1"];
    await keeper.answered(
      machine,
      name,
      found.map((address) => ({ address, ttl_s: 1 })),
    );
    assert.deepEqual(admitted, [["1", name, ["192.0.2.7", "2001:db8::1"]]]);
  });
});
