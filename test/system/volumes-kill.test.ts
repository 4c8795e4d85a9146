/** The platform is killed in the middle of every operation on volumes; the next start finishes it or undoes it. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { run } from "#drivers/disk/programs.ts";
import { random, runs, seed, tempDir, until } from "../support.ts";
import { traces, volumesMissing } from "../volumes.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { ownMounts } from "./own-mounts.ts";

const ROUNDS = runs(1);
const BASE = "/v1/apps/web/volumes";

interface Listed {
  id: string;
  state: string;
  name: string;
}

const list = async (daemon: Daemon): Promise<Listed[]> =>
  (await daemon.call("GET", `${BASE}?include_deleted=true`)).body as unknown as Listed[];
const imageOf = (dir: string, id: string): string => join(dir, "volumes/pool/images/volumes", `${id}.img`);

const create = (daemon: Daemon, round: number) =>
  daemon.call("POST", BASE, { name: `made${round}`, size_gb: 1, require_unique_zone: false });

/** Finds out what it has to know, and answers how to ask for it: only that is under the knife. */
type Operation = (daemon: Daemon, facts: Facts) => Promise<() => Promise<unknown>>;

interface Facts {
  volume: string;
  snapshot: string;
  round: number;
}

const OPERATIONS: Record<string, Operation> = {
  async create(daemon, { round }) {
    return () => create(daemon, round);
  },
  async extend(daemon, { volume }) {
    const { body } = await daemon.call("GET", `${BASE}/${volume}`);
    return () => daemon.call("PUT", `${BASE}/${volume}/extend`, { size_gb: Number(body["size_gb"]) + 1 });
  },
  async snapshot(daemon, { volume }) {
    return () => daemon.call("POST", `${BASE}/${volume}/snapshots`);
  },
  async fork(daemon, { volume, round }) {
    const wish = { name: `fork${round}`, source_volume_id: volume, require_unique_zone: false };
    return () => daemon.call("POST", BASE, wish);
  },
  async restore(daemon, { snapshot, round }) {
    const wish = { name: `copy${round}`, region: "local", snapshot_id: snapshot };
    return () => daemon.call("POST", BASE, wish);
  },
  async delete(daemon, { round }) {
    const made = (await list(daemon)).find(({ name, state }) => name.startsWith("made") && state === "created");
    // The one that was to be made may have been undone.
    const id = made?.id ?? String((await create(daemon, round)).body["id"]);
    return () => daemon.call("DELETE", `${BASE}/${id}`);
  },
};

/** A volume with something in it, and a snapshot of that. */
async function furnish(daemon: Daemon, dir: string, content: string): Promise<Omit<Facts, "round">> {
  await daemon.call("POST", "/v1/apps", { app_name: "web" });
  const made = await daemon.call("POST", BASE, { name: "data", size_gb: 1, encrypted: false });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const volume = String(made.body["id"]);
  const script = join(dir, "script");
  writeFileSync(join(dir, "content"), content);
  writeFileSync(script, `cd data\nwrite ${join(dir, "content")} file\n`);
  await run("debugfs", ["-w", "-f", script, imageOf(join(dir, "data"), volume)]);
  const { body } = await daemon.call("POST", `${BASE}/${volume}/snapshots`);
  const snapshot = (body as { Msg: { backup: { graph_id: string } } }).Msg.backup.graph_id;
  await stored(daemon, volume, 1);
  return { volume, snapshot };
}

async function stored(daemon: Daemon, volume: string, at_least: number): Promise<void> {
  await until(`${at_least} snapshots are stored`, async () => {
    const { body } = await daemon.call("GET", `${BASE}/${volume}/snapshots`);
    return (body as unknown as unknown[]).length >= at_least;
  });
}

/** Everything rests, every file system is clean, forks and restores have the content, and nothing is left over. */
async function inspect(daemon: Daemon, dir: string, content: string): Promise<void> {
  const resting = ["created", "destroyed"];
  const volumes = await until("every volume rests", async () => {
    const found = await list(daemon);
    return found.every(({ state }) => resting.includes(state)) && found;
  });
  for (const { id, name, state } of volumes.filter((one) => one.state === "created")) {
    const image = imageOf(join(dir, "data"), id);
    await run("e2fsck", ["-f", "-n", image]);
    if (!/^(data|fork|copy)/.test(name)) continue;
    await run("debugfs", ["-R", `dump data/file ${join(dir, "found")}`, image]);
    assert.equal(await readFile(join(dir, "found"), "utf8"), content, `${name} ${state}`);
  }
  const { waste } = await until("nothing unknown is on the disk", async () => {
    const { body } = await daemon.call("POST", "/v1/platform/disk/collect", {});
    const found = body as unknown as { waste: { kind: string; id: string }[] };
    return found.waste.every(({ kind }) => kind === "unknown object") && found;
  });
  assert.ok(waste.length <= 2, JSON.stringify(waste));
}

async function killed(
  t: TestContext,
  dir: string,
  facts: Facts,
  operation: Operation,
  after_ms: number,
): Promise<void> {
  const daemon = await startDaemon(t, join(dir, "data"), ["--volume-disk", "loop"]);
  const ask = await operation(daemon, facts);
  const asked = ask().catch(() => undefined);
  await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, after_ms))]);
  await daemon.child.kill();
  await asked;
}

if (await ownMounts(import.meta.filename)) {
  suite("volumes and kill -9", { skip: volumesMissing() }, () => {
    test("a kill in any operation leaves it finished or undone, clean, with nothing lost or left over", async (t) => {
      const dir = tempDir("hangar-volumes");
      const next = random(seed(t));
      const content = "what was acknowledged stays".repeat(5000);
      let daemon = await startDaemon(t, join(dir, "data"), ["--volume-disk", "loop"]);
      const facts = await furnish(daemon, dir, content);
      await daemon.child.kill();
      let kills = 0;
      for (let round = 0; round < ROUNDS; round++) {
        for (const [name, operation] of Object.entries(OPERATIONS)) {
          await killed(t, dir, { ...facts, round }, operation, next() * 150);
          kills++;
          daemon = await startDaemon(t, join(dir, "data"), ["--volume-disk", "loop"]);
          await inspect(daemon, dir, content);
          await daemon.child.kill();
          t.diagnostic(`${name}: well again`);
        }
      }
      daemon = await startDaemon(t, join(dir, "data"), ["--volume-disk", "loop"]);
      assert.equal((await daemon.call("POST", "/v1/platform/disk/collect", { apply: true })).status, 200);
      assert.deepEqual((await daemon.call("POST", "/v1/platform/disk/collect", {})).body["waste"], []);
      daemon.child.signal("SIGTERM");
      await daemon.child.ended;
      assert.deepEqual([traces(dir).loops, traces(dir).mounts], [[], []], "a clean stop takes the pool away");
      t.diagnostic(`${kills} kills`);
    });
  });
}
