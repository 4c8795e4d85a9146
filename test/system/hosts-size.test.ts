/**
 * Three hosts and two controls on boxes of their own, a PostgreSQL, and sixty real machines. Then everything goes wrong:
 * the database crashes under load, a host's process is killed, another one's cable is pulled while it runs on, a third
 * is paused for longer than its lease. What machines and writers saw is laid side by side at the end: no acknowledged
 * write is lost, no machine ran in two places, what stands by was up in time, and nothing is left on any host.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { suite, type TestContext, test } from "node:test";
import { messageOf } from "#core/assert.ts";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs } from "../support.ts";
import { twice } from "./hosts-history.ts";
import { aHouse, type ControlBox, type HostBox } from "./hosts-house.ts";
import { until } from "./hosts-support.ts";
import { TICKER, Ticks, tickClock } from "./hosts-ticks.ts";
import { Writers } from "./hosts-writes.ts";

const MACHINES = "/v1/apps/web/machines";
const COUNT = 60;
const LEASE_S = 15;
/** Boxes that share two processors are slow to start dozens of machines. */
const PATIENCE_MS = 300_000;
/** Any two of the hosts have room for everything. */
const ROOM = ["--host-cpus", "100", "--host-memory-mb", "100000"];
const CONFIG = { image: "busybox", init: { exec: TICKER }, guest: { cpus: 1, memory_mb: 256 } };
const MOVES = { ...CONFIG, metadata: { hangar_on_host_loss: "move" } };

interface Shown {
  id: string;
  host: string;
  state: string;
  host_status: string;
  events: readonly object[];
}

interface Scene {
  t: TestContext;
  controls: readonly [ControlBox, ControlBox];
  hosts: readonly HostBox[];
  ticks: Ticks;
}

/** One host's machine that may not leave it, and the one on the next host that stands by for it. */
interface Pair {
  stays: string;
  standby: string;
}

const path = (id: string): string => `${MACHINES}/${id}`;

async function list(control: ControlBox): Promise<Map<string, Shown>> {
  const machines = (await control.ask("GET", MACHINES)) as unknown as Shown[];
  return new Map(machines.map((machine) => [machine.id, machine]));
}

/** Asked under one key until it is done: while the database is away nothing is. */
async function make(control: ControlBox, body: object): Promise<string> {
  const key = { "idempotency-key": randomUUID() };
  const made = async (): Promise<string | false> => {
    const answer = await control.call("POST", MACHINES, body, key);
    return answer?.status === 200 && String(answer.body["id"]);
  };
  return await until("a machine is made", made, PATIENCE_MS);
}

async function allRun({ controls }: Scene, ids: readonly string[], what: string): Promise<void> {
  const look = async (control: ControlBox): Promise<boolean> => {
    const known = await list(control);
    return ids.every((id) => known.get(id)?.state === "started" && known.get(id)?.host_status === "ok");
  };
  try {
    for (const control of controls) await until(what, () => look(control), PATIENCE_MS);
  } catch (thrown) {
    // Which ones, and what became of them, is worth more than that somebody waited.
    const others = [...(await list(controls[0])).values()]
      .filter(({ state, host_status }) => state !== "started" || host_status !== "ok")
      .map(
        ({ id, state, host, host_status, events }) =>
          `${id} on ${host} (${host_status}) is ${state}: ${JSON.stringify(events.slice(0, 4))}`,
      );
    throw new Error([messageOf(thrown), ...others].join("\n"), { cause: thrown });
  }
}

/** Puts it on that host, wherever it was placed. */
async function bring({ controls: [control] }: Scene, id: string, { id: host_id }: HostBox): Promise<void> {
  await until(
    "it is asked to move",
    async () => (await control.call("POST", `${path(id)}/move`, { host_id }))?.status === 200,
  );
  await until("it is there", async () => (await list(control)).get(id)?.host === host_id, PATIENCE_MS);
}

async function pairUp(scene: Scene): Promise<Pair[]> {
  const { controls, hosts } = scene;
  const pairs: Pair[] = [];
  for (const [index, host] of hosts.entries()) {
    const stays = await make(controls[0], { config: CONFIG });
    const standby = await make(controls[1], { config: { ...CONFIG, standbys: [stays] }, skip_launch: true });
    await bring(scene, stays, host);
    await bring(scene, standby, hosts[(index + 1) % hosts.length] ?? assert.fail());
    pairs.push({ stays, standby });
  }
  return pairs;
}

/** Something is done to a host that makes it lost, and undone when the others have taken over. */
async function lose(scene: Scene, index: number, pair: Pair, ids: readonly string[], what: Disaster): Promise<void> {
  const { t, controls, hosts, ticks } = scene;
  const host = hosts[index] ?? assert.fail();
  const next = hosts[(index + 1) % hosts.length] ?? assert.fail();
  const before = await list(controls[0]);
  const there = ids.filter((id) => before.get(id)?.host === host.id);
  assert.ok(there.length > 0, "it has machines to lose");
  await until("what stays ticks", async () => ticks.of(host.id, pair.stays).length > 2, PATIENCE_MS);
  const at = tickClock();
  await what.begin(host);
  const begun = await until(
    "the standby ticks",
    async () => ticks.of(next.id, pair.standby).find((time) => time > at),
    PATIENCE_MS,
  );
  const leases = (begun - at) / LEASE_S;
  t.diagnostic(`${what.name}: ${there.length} machines lost, the standby up after ${leases.toFixed(2)} leases`);
  assert.ok(leases <= 2, "standbys are up within two leases");
  const elsewhere = async (): Promise<boolean> => {
    const known = await list(controls[1]);
    return ids.every((id) => known.get(id)?.state === "started" && known.get(id)?.host !== host.id);
  };
  await until("what may leave runs elsewhere", elsewhere, PATIENCE_MS);
  assert.equal((await list(controls[1])).get(pair.stays)?.host_status, "unreachable");
  const rested = ticks.of(host.id, pair.stays).length;
  await what.end(host);
  await until("what stayed goes on", async () => ticks.of(host.id, pair.stays).length > rested + 2, PATIENCE_MS);
  assert.equal(ticks.of(host.id, pair.stays, "boot").length, 1, "it was never ended");
  await allRun(scene, [...ids, pair.stays], "all run, on hosts that are there");
  await controls[0].ask("POST", `${path(pair.standby)}/stop`);
  await until(
    "the standby rests",
    async () => (await list(controls[0])).get(pair.standby)?.state === "stopped",
    PATIENCE_MS,
  );
}

interface Disaster {
  name: string;
  begin(host: HostBox): Promise<void> | void;
  end(host: HostBox): Promise<void> | void;
}

const DISASTERS: readonly Disaster[] = [
  // Its machines run on without it, until the guard stops them.
  { name: "killed", begin: async ({ child }) => void (await child.kill()), end: (host) => host.again() },
  { name: "cut off", begin: ({ box }) => box.cut(), end: ({ box }) => box.mend() },
  { name: "paused", begin: ({ child }) => child.signal("SIGSTOP"), end: ({ child }) => child.signal("SIGCONT") },
];

async function clearAway({ controls: [control], hosts }: Scene): Promise<void> {
  const all = [...(await list(control)).keys()];
  await Promise.all(all.map((id) => control.ask("DELETE", `${path(id)}?force=true`)));
  await until("all are destroyed", async () => (await list(control)).size === 0, PATIENCE_MS);
  for (const { box, data_dir } of hosts) {
    const census = box.program("test/system/hosts-left.ts", [data_dir]);
    await census.ended;
    assert.deepEqual(census.lines, ["left {}"], `nothing is left on it: ${census.complaints}`);
  }
}

const heavy = runs(0, 1) === 0 ? "takes minutes: npm run prove -- system/hosts-size" : undefined;
const missing = heavy ?? realMachinesMissing() ?? postgresMissing();

suite("several hosts under faults", { skip: missing }, () => {
  test("no acknowledged write is lost, nothing runs twice, standbys start in time, nothing is left (X1)", async (t) => {
    const house = await aHouse(t, "--host-lease", String(LEASE_S));
    const controls = [await house.control(), await house.control()] as const;
    const hosts = [await house.host(...ROOM), await house.host(...ROOM), await house.host(...ROOM)];
    await using ticks = new Ticks(hosts);
    const scene: Scene = { t, controls, hosts, ticks };
    await controls[0].ask("POST", "/v1/apps", { app_name: "web" });
    const pairs = await pairUp(scene);
    await using writers = new Writers(controls);
    for (const { stays, standby } of pairs) {
      ticks.follow(stays, standby);
      writers.start(path(stays));
    }
    const making = Array.from({ length: COUNT }, (_, index) =>
      make(controls[index % 2] ?? assert.fail(), { config: MOVES }),
    );
    await Promise.race(making);
    await house.restartDatabase();
    const ids = await Promise.all(making);
    ticks.follow(...ids);
    for (const id of ids.slice(0, 3)) writers.start(path(id));
    await allRun(scene, [...ids, ...pairs.map(({ stays }) => stays)], "all run, on whatever was restarted under them");

    for (const [index, disaster] of DISASTERS.entries())
      await lose(scene, index, pairs[index] ?? assert.fail(), ids, disaster);

    const { acknowledged, refused } = await writers.stop();
    await ticks.stop();
    assert.deepEqual(twice(ticks.spans()), [], "no machine ran in two places at once");
    const moved = new Set(ticks.spans().map(({ host, machine }) => `${host} ${machine}`)).size;
    const expected = [...ids, ...pairs.flatMap(({ stays, standby }) => [stays, standby])].sort();
    const heard = new Set(ticks.spans().map(({ machine }) => machine));
    assert.deepEqual([...heard].sort(), expected, "every machine was heard");
    assert.deepEqual(
      [...(await list(controls[1])).keys()].sort(),
      expected,
      "what was made is there, and nothing else",
    );
    await clearAway(scene);
    t.diagnostic(
      `${COUNT} machines in ${moved} places on 3 hosts: 0 ran twice; ${acknowledged} writes acknowledged and ${refused} refused: 0 lost; 0 left behind`,
    );
  });
});

suite("history of running machines", () => {
  test("a machine that ran on two hosts at once is found, one that moved is not", () => {
    const span = (host: string, from: number, to: number) => ({ host, machine: "m", from, to });
    assert.deepEqual(twice([span("a", 0, 10), span("b", 11, 20), span("a", 21, 30)]), []);
    assert.equal(twice([span("a", 0, 10), span("b", 9, 20)]).length, 1);
  });
});
