/**
 * Everything at once, and everything goes wrong: machines with volumes behind the edge proxy under load, while the
 * platform is killed, its database crashes, its clock jumps, its disk is full, a registry says nothing and the metrics'
 * server is gone. The responses of clients are compared with the final state.
 */
import assert from "node:assert/strict";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { random, runs, seed, until } from "../support.ts";
import { traces } from "../volumes.ts";
import { chaosMissing, insist, openScene, PROGRAM, programs, type Scene } from "./chaos-scene.ts";
import { fill } from "./fill.ts";
import { census } from "./leaks.ts";
import { ownMounts } from "./own-mounts.ts";

const APPS = ["chaos-one", "chaos-two"];
const MACHINES_PER_APP = runs(2, 10, 10);
const CLIENTS_PER_APP = runs(2, 8, 8);
/** How often each fault occurs, and how long it lasts. */
const ROUNDS = runs(1, 3, 100);
const GONE_MS = runs(2000, 20_000, 60_000);
const HOUR_S = 3600;

/** What goes wrong. Each comes back when it is over. */
const FAULTS: Record<string, (scene: Scene, dice: () => number, stage: Running) => Promise<void>> = {
  async "the platform is killed"(scene) {
    await scene.kill();
    await scene.start();
  },
  async "PostgreSQL crashes"(scene) {
    await scene.database.restart();
  },
  async "the platform and PostgreSQL are killed together"(scene) {
    await Promise.all([scene.kill(), scene.database.restart()]);
    await scene.start();
  },
  async "the clock jumps"(scene, dice) {
    scene.clock(dice() < 0.5 ? -HOUR_S : 2 * HOUR_S);
    await delay(GONE_MS / 4);
    scene.clock(0);
  },
  async "a registry says nothing"(scene) {
    const body = { config: { image: `${scene.registry}/silent:1` }, skip_launch: true };
    // Nobody waits for it; what matters is that nobody else has to.
    void scene.ask("POST", `/v1/apps/${APPS[0]}/machines`, body);
    await delay(GONE_MS / 4);
  },
  async "VictoriaMetrics is gone"(scene) {
    scene.victoria.cut();
    await delay(GONE_MS);
    scene.victoria.open = true;
  },
  async "the disk is full"(scene, _dice, { machines, told }) {
    const makeRoom = fill(scene.disk.path);
    await delay(GONE_MS / 4);
    makeRoom();
    // A volume whose journal found no room stays read-only until its machine is restarted, as the manual says.
    for (const [id, app] of machines) {
      const path = `/v1/apps/${app}/machines/${id}`;
      const command = ["/usr/bin/node", "-e", TOUCH];
      const tried = await insist(scene, "POST", `${path}/exec`, { command, timeout: 30 }).catch(
        async (thrown: unknown) => {
          const { events } = (await scene.ask("GET", path))?.body ?? {};
          throw new Error(`${messageOf(thrown)}, after ${JSON.stringify(events)}`, { cause: thrown });
        },
      );
      if (tried["exit_code"] === 0) continue;
      told.restarts.set(id, (told.restarts.get(id) ?? 0) + 1);
      await insist(scene, "POST", `${path}/restart`);
    }
  },
};

const READ = 'require("node:fs").readFileSync("/data/log", "utf8")';
const TOUCH = 'require("node:fs").writeFileSync("/data/probe", "x", { flush: true })';

/** The app of each machine, and what they said so far. */
interface Running {
  machines: ReadonlyMap<string, string>;
  told: Told;
}

interface Told {
  /** Paths that were acknowledged, by the machine that did. */
  written: Map<string, string[]>;
  /** Words of each machine's program that were heard: more than one, and it was started again. */
  starts: Map<string, Set<string>>;
  /** How often each machine was restarted on purpose. */
  restarts: Map<string, number>;
  /** Secrets of each app that were acknowledged. */
  secrets: Map<string, Set<string>>;
  misled: string[];
  refused: number;
}

const nothingTold = (): Told => ({
  written: new Map(),
  starts: new Map(),
  restarts: new Map(),
  secrets: new Map(),
  misled: [],
  refused: 0,
});

/** Asks the edge proxy for an app, and notes what is said. */
async function write({ port }: Scene, app: string, path: string, told: Told): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request(
    { host: "127.0.0.1", port, path, method: "POST", agent: false, headers: { host: `${app}.localhost` } },
    (answer) => void text(answer).then((said) => (answer.statusCode === 200 ? resolve(said) : reject()), reject),
  );
  asked.on("error", reject).setTimeout(30_000, () => asked.destroy());
  asked.end();
  const said = await promise.catch(() => undefined);
  if (said === undefined) {
    told.refused++;
    // A closed port is refused at once, so wait before the next request.
    return await delay(20);
  }
  const { app: from, machine, start } = JSON.parse(said) as Record<"app" | "machine" | "start", string>;
  if (from !== app) told.misled.push(`${path} for ${app} was answered by ${machine} of ${from}`);
  told.written.set(machine, [...(told.written.get(machine) ?? []), path]);
  told.starts.set(machine, (told.starts.get(machine) ?? new Set()).add(start));
}

/** Clients that write through the edge proxy and through the API until they are stopped. */
function beginClients(scene: Scene, told: Told): { end(): Promise<void> } {
  let over = false;
  const visitor = async (app: string, client: number): Promise<void> => {
    for (let n = 0; !over; n++) await write(scene, app, `/${app}/${client}/${n}`, told);
  };
  const api = async (app: string): Promise<void> => {
    for (let n = 0; !over; n++) {
      const answer = await scene.ask("POST", `/v1/apps/${app}/secrets/S${n}`, { value: String(n) });
      if (answer?.status === 201) told.secrets.set(app, (told.secrets.get(app) ?? new Set()).add(`S${n}`));
      await delay(50);
    }
  };
  const all = APPS.flatMap((app) => [api(app), ...Array.from({ length: CLIENTS_PER_APP }, (_, n) => visitor(app, n))]);
  return {
    async end() {
      over = true;
      await Promise.all(all);
    },
  };
}

async function makeMachines(scene: Scene): Promise<Map<string, string>> {
  const machines = new Map<string, string>();
  for (const app of APPS) {
    await insist(scene, "POST", "/v1/apps", { app_name: app });
    await insist(scene, "POST", `/v1/apps/${app}/ip_assignments`, { type: "shared_v4" });
    for (let n = 0; n < MACHINES_PER_APP; n++) {
      const volume = await insist(scene, "POST", `/v1/apps/${app}/volumes`, {
        name: "data",
        size_gb: 1,
        require_unique_zone: false,
      });
      const { id } = await insist(scene, "POST", `/v1/apps/${app}/machines`, {
        config: {
          image: "hangar/hello",
          init: { exec: ["/usr/bin/node", "-e", PROGRAM] },
          env: { APP: app },
          guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
          mounts: [{ volume: volume["id"], path: "/data" }],
          services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: scene.port, handlers: ["http"] }] }],
        },
      });
      machines.set(String(id), app);
    }
  }
  return machines;
}

/** From now until every app answers through the edge proxy and the API can write. */
async function recovery(scene: Scene, after: string): Promise<number> {
  const began = performance.now();
  for (const app of APPS) {
    await until(`${app} answers after ${after}`, async () => {
      const tried = nothingTold();
      await write(scene, app, "/recovered", tried);
      return tried.refused === 0;
    });
    await until(`${app} can be changed after ${after}`, async () => {
      const answer = await scene.ask("POST", `/v1/apps/${app}/secrets/AFTER`, { value: "x" });
      return answer?.status === 201 || answer?.status === 200;
    });
  }
  return performance.now() - began;
}

/** The acknowledged writes that exist. */
async function judge(scene: Scene, machines: ReadonlyMap<string, string>, told: Told): Promise<void> {
  assert.deepEqual(told.misled, [], "no request is answered by a machine of another app");
  for (const [id, app] of machines) {
    const path = `/v1/apps/${app}/machines/${id}`;
    const answer = await insist(scene, "POST", `${path}/exec`, { command: ["/usr/bin/node", "-p", READ], timeout: 30 });
    assert.equal(answer["exit_code"], 0, `the volume of ${id} can be read: ${String(answer["stderr"])}`);
    const kept = String(answer["stdout"]).split("\n");
    const written = told.written.get(id) ?? [];
    const lost = written.filter((line) => !kept.includes(line));
    const restarts = told.restarts.get(id) ?? 0;
    const counts = `${written.length} acknowledged, ${kept.length} found, restarted ${restarts} times`;
    assert.deepEqual(lost, [], `what ${id} acknowledged is in its volume: ${counts}`);
  }
  for (const [app, names] of told.secrets) {
    const { body } = (await scene.ask("GET", `/v1/apps/${app}/secrets`)) ?? assert.fail();
    const there = JSON.stringify(body);
    const lost = [...names].filter((name) => !there.includes(`"${name}"`));
    assert.deepEqual(lost, [], `secrets of ${app} that were acknowledged are there`);
  }
  const running = programs();
  for (const id of machines.keys()) {
    assert.equal(running.get(id), 1, `${id} runs once`);
    const most = 1 + (told.restarts.get(id) ?? 0);
    assert.ok((told.starts.get(id)?.size ?? 1) <= most, `${id} was never interrupted but by us`);
  }
}

/** Destroys everything, and checks that it no longer exists. */
async function leaveNothing(scene: Scene): Promise<void> {
  const { data_dir } = scene.installation();
  for (const app of APPS) {
    await insist(scene, "DELETE", `/v1/apps/${app}?force=true`);
    await until(`${app} is gone`, async () => (await scene.ask("GET", `/v1/apps/${app}`))?.status === 404);
  }
  await scene.stop();
  // The guard of a host that shares its database stays until the platform is taken down.
  const { kept: _, guard: __, ...left } = census(scene.installation());
  assert.deepEqual(left, {});
  await takeDown({ ...scene.installation(), clock: systemClock, log: silentLog });
  await until("nothing at all is left", () => Object.keys(census(scene.installation())).length === 0);
  assert.deepEqual(traces(data_dir).loops, [], "no volume is attached");
}

async function chaos(t: TestContext): Promise<void> {
  const dice = random(seed(t));
  const scene = await openScene(t);
  await scene.start();
  const machines = await makeMachines(scene);
  await recovery(scene, "the start");
  const told = nothingTold();
  const clients = beginClients(scene, told);
  t.after(() => clients.end());
  const took = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++) {
    const order = Object.entries(FAULTS).toSorted(() => dice() - 0.5);
    for (const [name, happen] of order) {
      await happen(scene, dice, { machines, told });
      took.set(name, [...(took.get(name) ?? []), await recovery(scene, name)]);
    }
  }
  await clients.end();
  await judge(scene, machines, told);
  await leaveNothing(scene);
  const written = [...told.written.values()].reduce((sum, { length }) => sum + length, 0);
  const secrets = [...told.secrets.values()].reduce((sum, { size }) => sum + size, 0);
  assert.ok(written > 0 && secrets > 0, "there was something to lose");
  const restarts = [...told.restarts.values()].reduce((sum, count) => sum + count, 0);
  const refused = `${told.refused} refused meanwhile; ${restarts} restarts after a full disk`;
  t.diagnostic(`${machines.size} machines; ${written} writes and ${secrets} secrets acknowledged, 0 lost, ${refused}`);
  for (const [name, times] of took)
    t.diagnostic(`${name}: all well again after ${times.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(", ")}`);
}

if (await ownMounts(import.meta.filename)) {
  // Real machines, three servers and a minute of their time: with the other proofs, not with every push.
  const skip = runs(0, 1) === 0 ? "takes minutes: npm run prove -- chaos" : chaosMissing();
  suite("chaos", { skip }, () => {
    test("no acknowledged write is lost, no machine is interrupted or doubled, nothing is left (X1)", chaos);
  });
}
