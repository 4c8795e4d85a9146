/**
 * Faults in an order that a seed decides, over two controls, three hosts and a PostgreSQL with a standby, while clients
 * write, read, take leases, and create, stop and start machines. What they were told and what the hosts did is written
 * down, and a checker looks for lost writes, stale reads, leases of two, machines that ran twice, answers that never
 * came and states that are wrong at the end. Variants that are broken on purpose must be found by it.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { check, problemsOf, statesAtEnd } from "../faults/checker.ts";
import { Clients, MACHINES } from "../faults/clients.ts";
import { type Broken, type ControlNode, type FaultCluster, LEASE_S, startFaultCluster } from "../faults/cluster.ts";
import { History } from "../faults/history.ts";
import { type Dice, FAULTS, strike } from "../faults/nemesis.ts";
import { postgresMissing } from "../postgres.ts";
import { random, runs, seed } from "../support.ts";
import { ROOT } from "./child.ts";
import { twice } from "./hosts-history.ts";
import { until } from "./hosts-support.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";

const NAMES = Object.keys(FAULTS);
/** Every fault once by itself, then so many rounds of two at once. */
const PAIRS = runs(2, 12, 120);
/** A control must show itself within so many. */
const CONTROL_TRIES = 5;
/** Maximum time of a response: a request makes a few calls to the database, each of 10 s at most. */
const ANSWER_MS = 60_000;
const LEASE_MS = LEASE_S * 1000;
const MOVABLE = { metadata: { hangar_on_host_loss: "move" } };
const register = (machine: string): string => `${MACHINES}/${machine}/metadata/register`;

interface Machine {
  id: string;
  state: string;
  host: string;
  host_status: string;
}

interface Scene {
  cluster: FaultCluster;
  history: History;
  clients: Clients;
  dice: Dice;
}

async function startScene(
  t: TestContext,
  options: { controls?: number; hosts?: number; broken?: Broken } = {},
): Promise<Scene> {
  const start = seed(t);
  const dice = random(start);
  const cluster = await startFaultCluster(t, { controls: 2, hosts: 3, ...options });
  const history = new History();
  const [control] = cluster.controls;
  assert.ok(control);
  await until("there is an app", async () => {
    const { status } = await control.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    return status === 201 || status === 409;
  });
  // Dice of their own: how fast they are must not change which faults come.
  const clients = new Clients(cluster.controls, history, random(start + 1));
  t.after(() => clients[Symbol.asyncDispose]());
  return { cluster, history, clients, dice };
}

async function machinesOf(control: ControlNode): Promise<Machine[]> {
  const { status, body } = await control.call("GET", MACHINES);
  assert.equal(status, 200, JSON.stringify(body));
  return body as unknown as Machine[];
}

const createdIds = ({ operations }: History): string[] =>
  operations.flatMap(({ kind, outcome, value }) => (kind === "create" && outcome === "ok" && value ? [value] : []));

/** Every control takes writes and reads, and says of every machine that it is in one of these states on a host that is well. */
async function untilWell(
  { cluster, history, clients }: Scene,
  what: string,
  allowed: (id: string) => readonly string[] = () => ["started"],
): Promise<void> {
  for (const control of cluster.controls) {
    let missing: object[] = [];
    const look = async (): Promise<boolean> => {
      const machines = new Map((await machinesOf(control)).map((machine) => [machine.id, machine]));
      missing = createdIds(history).flatMap((id) => {
        const machine = machines.get(id);
        return machine && machine.host_status === "ok" && allowed(id).includes(machine.state)
          ? []
          : [machine ? shortOf(machine) : { id }];
      });
      return missing.length === 0 && (await fetch(`${control.base_url}/readyz`)).ok;
    };
    await until(what, look).catch((cause: unknown) => {
      throw new Error(`${what}, except at ${control.name} ${JSON.stringify(missing)}`, { cause });
    });
    const [id = ""] = createdIds(history);
    await until(`${what}: it writes`, async () => (await clients.write(control, register(id))).outcome === "ok");
    await until(`${what}: it reads`, async () => (await clients.read(control, register(id))).outcome === "ok");
  }
}

const shortOf = ({ id, state, host, host_status }: Machine): Machine => ({ id, state, host, host_status });

const ANY_STATE = ["created", "starting", "started", "stopping", "stopped"];

/** Nothing that was seen so far is wrong. */
function judge({ cluster, history }: Scene, when: string): void {
  assert.deepEqual(problemsOf(check(history.soFar(), { down: history.down, answer_ms: ANSWER_MS })), [], when);
  assert.deepEqual(twice(cluster.spans()), [], `no machine could run in two places at once: ${when}`);
}

async function createAll({ clients }: Scene): Promise<{ machines: string[]; toggled: string[]; leased: string }> {
  const make = (count: number, config: object): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, () => clients.create(config)));
  const machines = [...(await make(3, MOVABLE)), ...(await make(3, {}))];
  const [toggled, [leased = ""]] = [await make(2, MOVABLE), await make(1, {})];
  return { machines, toggled, leased };
}

/** What the dice say happens, one fault after the other, and how long each took to be over when it was over. */
async function strikeAll(scene: Scene, toggled: readonly string[]): Promise<Map<string, number[]>> {
  const { cluster, history, dice } = scene;
  const took = new Map<string, number[]>();
  const order = NAMES.map((name) => ({ name, at: dice() })).sort((a, b) => a.at - b.at);
  const anyOf = (): string => NAMES[Math.floor(dice() * NAMES.length)] ?? "";
  const rounds = [...order.map(({ name }) => [name]), ...Array.from({ length: PAIRS }, () => pairOf(anyOf))];
  for (const names of rounds) {
    const what = names.join(", while ");
    // Both are taken back, also when one of them fails.
    const struck = await Promise.allSettled(names.map((name) => strike(name, { cluster, history, dice })));
    for (const one of struck) if (one.status === "rejected") throw one.reason;
    const over = performance.now();
    await untilWell(scene, `everything runs after: ${what}`, (id) => (toggled.includes(id) ? ANY_STATE : ["started"]));
    const key = names.length === 1 ? what : "two at once";
    took.set(key, [...(took.get(key) ?? []), (performance.now() - over) / 1000]);
    judge(scene, what);
  }
  return took;
}

/** Two that can be at once: a database that is gone cannot fail over, and one process has one thing done to it. */
function pairOf(anyOf: () => string): [string, string] {
  const group = (name: string): string =>
    name.includes("database") && !name.includes("process") ? "database" : name.split(" ").slice(0, 2).join(" ");
  for (;;) {
    const [one, other] = [anyOf(), anyOf()];
    if (group(one) !== group(other)) return [one, other];
  }
}

/** A host stands still for longer than its lease; what others start meanwhile it must not have run on. */
async function runsTwice(scene: Scene): Promise<boolean> {
  const { cluster, clients } = scene;
  const [first] = cluster.hosts;
  const [control] = cluster.controls;
  assert.ok(first && control);
  const state = async (): Promise<unknown> =>
    (await control.call("GET", `/v1/platform/hosts/${first.id}`)).body["state"];
  // On a busy box a host may lose its lease and its machines before it is stopped, which shows nothing: once more.
  for (let tries = 0; tries < CONTROL_TRIES; tries++) {
    for (let made = 0; made < 4; made++) await clients.create(MOVABLE);
    await untilWell(scene, "all machines run");
    first.child.signal("SIGSTOP");
    await until("it is taken for lost", async () => (await state()) === "failed");
    await untilWell(scene, "its machines run elsewhere");
    if (twice(cluster.spans()).length > 0) return true;
    first.child.signal("SIGCONT");
    await until("it comes back", async () => (await state()) === "ok");
  }
  return false;
}

const skip =
  postgresMissing() ??
  mountsMissing() ??
  (process.env["HANGAR_TEST_POSTGRES_URL"] ? "needs a server of its own" : undefined);

if (await ownMounts(import.meta.filename)) {
  suite("faults of hosts, controls and their database", { skip }, () => {
    test("faults in any order lose nothing, run nothing twice, and everything recovers (X2)", async (t) => {
      const scene = await startScene(t);
      const { cluster, history, clients } = scene;
      const made = await createAll(scene);
      await untilWell(scene, "all machines run");
      clients.start(made);
      const took = await strikeAll(scene, made.toggled);
      await clients.stop();
      const allowed = (id: string): string[] => statesAtEnd(history.operations, id, "started");
      await untilWell(scene, "everything is as it was asked for at the end", allowed);
      for (const control of cluster.controls) {
        for (const id of made.machines) await clients.read(control, register(id));
        await clients.list(control);
      }
      judge(scene, "at the end");
      assert.deepEqual(history.unexpected, [], "no request failed in a way that nobody foresaw");
      const recovery = [...took].map(([name, seconds]) => `${name} ${Math.max(...seconds).toFixed(1)} s`).sort();
      t.diagnostic(`leases of ${LEASE_S} s`);
      t.diagnostic(`well again at most so long after a fault was over: ${recovery.join(", ")}`);
      const { length } = history.operations;
      t.diagnostic(
        `${length} operations: ${history.count("ok", "write")} acknowledged writes, ${history.count("ok", "read")} reads, ` +
          `${history.count("ok", "acquire")} leases, ${history.count("unknown", "write")} writes left open, ` +
          `${cluster.spans().length} runs of machines`,
      );
    });

    test("a clean restart within the grace period moves nothing", async (t) => {
      const scene = await startScene(t, { controls: 1, hosts: 2 });
      const { cluster, clients } = scene;
      const [control] = cluster.controls;
      const [host] = cluster.hosts;
      assert.ok(control && host);
      for (let made = 0; made < 4; made++) await clients.create(MOVABLE);
      await untilWell(scene, "all machines run");
      const before = new Map((await machinesOf(control)).map((machine) => [machine.id, machine.host]));
      host.child.signal("SIGTERM");
      await host.child.ended;
      await delay(3 * LEASE_MS);
      const { body } = await control.call("GET", `/v1/platform/hosts/${host.id}`);
      assert.notEqual(body["state"], "failed", "it is waited for");
      await host.again();
      await untilWell(scene, "everything runs");
      for (const { id, host: now } of await machinesOf(control))
        assert.equal(now, before.get(id), "it is where it was");
    });

    const BROKEN_FENCES = {
      "does not fence itself": "HANGAR_TEST_UNFENCED",
      "leaves alone what others may start": "HANGAR_TEST_EXEMPT",
    };
    for (const [how, variable] of Object.entries(BROKEN_FENCES))
      test(`control: a host that ${how} is found by the checker (X2)`, async (t) => {
        const scene = await startScene(t, { controls: 1, hosts: 2, broken: { host: { [variable]: "1" } } });
        assert.ok(await runsTwice(scene), "both ran them, and the history does not show it");
      });

    test("control: a database call without a deadline is found by the checker (X2)", async (t) => {
      const preload = join(ROOT, "test/faults/no-deadline.ts");
      const broken = { control: { NODE_OPTIONS: `--import=${preload}` } };
      const scene = await startScene(t, { controls: 1, hosts: 1, broken });
      const { cluster, clients, history } = scene;
      const [control] = cluster.controls;
      assert.ok(control);
      const id = await clients.create();
      for (const link of control.links) link.silence();
      await clients.write(control, register(id));
      const { late } = check(history.operations, { down: history.down, answer_ms: ANSWER_MS });
      assert.match(late.join("\n"), /control 1 took \d+ ms for write/);
    });

    test("control: a write lost in a failover is found by the checker (X2)", async (t) => {
      const scene = await startScene(t, { controls: 2, hosts: 1 });
      const { cluster, clients, history } = scene;
      const [control, other] = cluster.controls;
      assert.ok(control && other);
      const id = await clients.create();
      await until("it is written", async () => (await clients.write(control, register(id))).outcome === "ok");
      await cluster.database.loseWrites();
      await until("it is written", async () => (await clients.write(control, register(id))).outcome === "ok");
      await cluster.database.failover();
      await until("it is read", async () => (await clients.read(other, register(id))).outcome === "ok");
      const { registers } = check(history.operations, { down: history.down, answer_ms: ANSWER_MS });
      assert.match(registers.join("\n"), /came after/);
    });
  });
}
