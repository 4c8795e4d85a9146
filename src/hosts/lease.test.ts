/**
 * The lease and the watch against each other, on a real store and with clocks that run at different speeds: whatever
 * happens to the holder, nothing of it runs when somebody else may begin.
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { type VirtualClock, virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { HostLease, HostTakenError } from "./lease.ts";
import { HostService } from "./service.ts";
import type { HostStore } from "./store.ts";
import { HostWatch } from "./watch.ts";

const LEASE_MS = 8000;
const HOST = { id: "00aa", region: "ams", zone: "z", cpus: 0, memory_mb: 0 };
const silentWire: Notifier = { send() {}, listen: () => () => {}, onGap: () => () => {}, close: async () => {} };

/** Counts faster or slower than the clock it is made from. */
const skewed = (clock: Clock, speed: number): Clock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic() * speed,
  sleep: (ms, signal) => clock.sleep(ms / speed, signal),
});

interface Stage {
  clock: VirtualClock;
  store: HostStore;
  /** What happened, with the time by the one clock that is right. */
  history: [what: string, at: number][];
  hosts: HostService;
  lease: HostLease;
  watch: HostWatch;
  /** The database does not answer the holder. */
  cut: { value: boolean };
  /** How often looking at what there is to do fails. */
  failures: { left: number };
}

async function stage(speeds: { holder: number; watcher: number } = { holder: 1, watcher: 1 }): Promise<Stage> {
  const database = inlineSqlite(new DatabaseSync(":memory:", { enableForeignKeyConstraints: true }));
  await migrate(database);
  const clock = virtualClock();
  const store = sqlHostStore(database);
  await store.declare([HOST]);
  const history: Stage["history"] = [];
  const note = (what: string): void => void history.push([what, clock.monotonic()]);
  const cut = { value: false };
  const failures = { left: 0 };
  const reaching: HostStore = new Proxy(store, {
    get: (target, name) => {
      if (cut.value) return () => Promise.reject(new Error("the database is away"));
      return Reflect.get(target, name) as unknown;
    },
  });
  const lease = new HostLease({
    host_id: HOST.id,
    node_id: "n1",
    lease_ms: LEASE_MS,
    arrival: () => ({ address: "", facts: {} }),
    store: reaching,
    clock: skewed(clock, speeds.holder),
    log: silentLog,
    fence: async () => note("fenced"),
    clear: async () => note("cleared"),
    open: async () => {
      note("opened");
      if (failures.left-- > 0) throw new Error("the database went away again");
    },
    onRenewed() {},
    onTaken() {},
  });
  const hosts = new HostService({ store, own: [] });
  const watch = new HostWatch({
    hosts,
    store,
    notifier: silentWire,
    clock: skewed(clock, speeds.watcher),
    log: silentLog,
    onLost: async () => note("lost"),
  });
  return { clock, store, history, hosts, lease, watch, cut, failures };
}

const times = ({ history }: Stage, what: string): number[] =>
  history.filter(([one]) => one === what).map(([, at]) => at);

suite("host lease", () => {
  test("a host keeps its lease while the database responds, and a second node learns who holds it", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    await here.lease.start();
    here.watch.start();
    t.after(() => here.watch.close());
    await here.clock.advance(20 * LEASE_MS);
    assert.ok(here.lease.valid);
    assert.deepEqual(
      here.history.map(([what]) => what),
      ["cleared", "opened"],
    );
    const other = await stage();
    await other.store.take({ id: HOST.id, node_id: "n2", epoch: 0 }, 0, {
      lease_ms: 1,
      address: "",
      facts: {},
      now: 0,
    });
    await assert.rejects(other.lease.start(), HostTakenError);
  });

  for (const [holder, watcher] of [
    [1, 1],
    [0.9, 1.1],
    [1.1, 0.9],
  ] as const) {
    test(`a host that is cut off fences itself before it counts as lost, with clocks at ${holder} and ${watcher}`, async (t) => {
      const here = await stage({ holder, watcher });
      t.after(() => here.lease.close());
      t.after(() => here.watch.close());
      await here.lease.start();
      here.watch.start();
      await here.clock.advance(3.1 * LEASE_MS);
      here.cut.value = true;
      await here.clock.advance(4 * LEASE_MS);
      const [fenced] = times(here, "fenced");
      const [lost] = times(here, "lost");
      assert.ok(fenced !== undefined && lost !== undefined);
      assert.ok(lost - fenced > LEASE_MS * 0.25, `fenced at ${fenced}, lost at ${lost}`);
      assert.equal(here.lease.valid, false);
      assert.equal((await here.store.find(HOST.id))?.state, "failed");
      here.cut.value = false;
      await here.clock.advance(LEASE_MS);
      assert.ok(here.lease.valid, "it comes back by itself");
      assert.deepEqual(
        here.history.map(([what]) => what),
        ["cleared", "opened", "fenced", "lost", "cleared", "opened"],
      );
    });
  }

  test("the startup work of a new lease is retried until it succeeds, and runs once", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    here.failures.left = 3;
    await here.lease.start();
    await here.clock.advance(5 * LEASE_MS);
    assert.deepEqual(
      here.history.map(([what]) => what),
      ["cleared", "opened", "opened", "opened", "opened"],
    );
    assert.ok(here.lease.valid);
  });

  test("a host that was only slow is unfenced and never counts as lost", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    t.after(() => here.watch.close());
    await here.lease.start();
    here.watch.start();
    await here.clock.advance(LEASE_MS);
    here.cut.value = true;
    await here.clock.advance(0.95 * LEASE_MS);
    assert.deepEqual([times(here, "fenced").length, here.lease.valid], [1, false]);
    here.cut.value = false;
    await here.clock.advance(LEASE_MS);
    assert.ok(here.lease.valid);
    assert.deepEqual(times(here, "lost"), []);
  });

  test("a silent host is `unknown` once it fences itself and `unreachable` once it is lost", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    t.after(() => here.watch.close());
    await here.lease.start();
    here.watch.start();
    await here.clock.advance(3 * LEASE_MS);
    assert.equal(here.hosts.status(HOST.id), "ok");
    here.cut.value = true;
    const seen: [string, boolean][] = [];
    for (let step = 0; step < 16; step++) {
      await here.clock.advance(LEASE_MS / 8);
      seen.push([here.hosts.status(HOST.id), times(here, "fenced").length > 0]);
    }
    assert.ok(!seen.some(([status, fenced], step) => status === "ok" && fenced && seen[step - 1]?.[1]), String(seen));
    assert.deepEqual([...new Set(seen.map(([status]) => status))], ["ok", "unknown", "unreachable"]);
    here.cut.value = false;
    await here.clock.advance(LEASE_MS);
    assert.equal(here.hosts.status(HOST.id), "ok");
  });

  test("a watch that could not read the database reports every host as unknown until its next renewal", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    await here.lease.start();
    await here.watch.look();
    assert.equal(here.hosts.status(HOST.id), "ok", "at the first look");
    here.lease.close();
    const refresh = t.mock.method(here.hosts, "refresh", () => Promise.reject(new Error("the database is away")));
    here.watch.start();
    await here.clock.advance(LEASE_MS);
    refresh.mock.restore();
    await here.clock.advance(LEASE_MS / 8);
    assert.equal(here.hosts.status(HOST.id), "unknown");
    const { epoch } = (await here.store.find(HOST.id)) ?? assert.fail();
    await here.store.renew({ id: HOST.id, node_id: "n1", epoch }, 0);
    await here.clock.advance(LEASE_MS / 8);
    assert.equal(here.hosts.status(HOST.id), "ok");
    here.watch.close();
  });

  test("a host that stops cleanly counts as lost only after its announced grace period", async (t) => {
    const here = await stage();
    t.after(() => here.watch.close());
    await here.lease.start();
    here.watch.start();
    await here.clock.advance(LEASE_MS);
    const grace_ms = 10 * LEASE_MS;
    const left = here.clock.monotonic();
    await here.lease.leave(grace_ms);
    await here.clock.advance(grace_ms);
    assert.deepEqual(times(here, "lost"), [], "the host is not marked as lost");
    await here.clock.advance(grace_ms / 2);
    const [lost = 0] = times(here, "lost");
    assert.ok(lost >= left + grace_ms * 1.25, `left at ${left}, lost at ${lost}`);
    await here.lease.leave(grace_ms);
    assert.equal((await here.store.find(HOST.id))?.lease_ms, grace_ms, "what is not held is not prolonged");
  });

  test("marking a host as failed fences it first and keeps it out until the mark is removed", async (t) => {
    const here = await stage();
    t.after(() => here.lease.close());
    t.after(() => here.watch.close());
    await here.lease.start();
    here.watch.start();
    await here.clock.advance(LEASE_MS);
    const hosts = new HostService({ store: here.store, own: [] });
    await hosts.setState(HOST.id, "failed");
    await here.clock.advance(4 * LEASE_MS);
    const [fenced = 0] = times(here, "fenced");
    const [lost = 0] = times(here, "lost");
    assert.ok(fenced > 0 && lost > fenced, "what follows comes after");
    assert.equal(here.lease.valid, false);
    await hosts.setState(HOST.id, "ok");
    await here.clock.advance(LEASE_MS);
    assert.ok(here.lease.valid);
    assert.equal((await here.store.find(HOST.id))?.state, "ok");
  });

  test("a host is removed once its lease has ended; before, the refusal names that time, also for one marked as failed", async (t) => {
    const here = await stage();
    t.after(() => here.watch.close());
    await here.lease.start();
    const refusal = async (): Promise<ApiError> => {
      try {
        await here.hosts.forget(HOST.id);
      } catch (thrown) {
        assert.ok(thrown instanceof ApiError);
        assert.equal(thrown.code, "conflict");
        return thrown;
      }
      return assert.fail("it was removed");
    };
    assert.match((await refusal()).message, /its lease is not known yet/);
    here.watch.start();
    await here.clock.advance(5 * LEASE_MS);
    const renewed = Date.parse(String((await refusal()).extras.facts?.["lease_ends_at"]));
    assert.ok(renewed > here.clock.now() && renewed <= here.clock.now() + 1.25 * LEASE_MS);
    here.lease.close();
    await here.hosts.setState(HOST.id, "failed");
    await here.clock.advance(LEASE_MS / 2);
    const left = await refusal();
    const ends_at = Date.parse(String(left.extras.facts?.["lease_ends_at"]));
    assert.match(left.message, /cannot be removed yet: its lease runs until \d{4}-/);
    assert.equal(here.hosts.leaseEndsAt(HOST.id), ends_at);
    // As seen by the next check.
    await here.clock.advance(ends_at - here.clock.now() + LEASE_MS / 4);
    await here.hosts.forget(HOST.id);
    assert.equal(await here.store.find(HOST.id), undefined);
  });
});
