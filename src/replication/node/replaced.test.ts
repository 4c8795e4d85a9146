/** Databases that another file replaces while their primary is stopped: replicas keep what they had. */
import assert from "node:assert/strict";
import { readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { suite } from "node:test";
import type { RunningNode } from "../commands.ts";
import { Application, look } from "../database/fixtures.ts";
import { type Scene, same, sent, story, until } from "./fixtures.ts";

interface Pair {
  dirs: [primary: string, replica: string];
  primary: RunningNode;
  replica: RunningNode;
}

/** Five entries on both nodes. Then the primary stops, another file of two entries gets the name, and it starts again. */
async function replaced(scene: Scene, difference_bytes?: number): Promise<Pair> {
  const [here, there] = [scene.dir(), scene.dir()];
  const first = await scene.start(here, { kind: "primary" });
  const app = await scene.app(here);
  for (let n = 0; n < 5; n++) await app.write();
  const replica = await scene.start(there, { kind: "join", url: first.url });
  await until("the replica has it", () => same(first, replica)() && look(join(there, "db")).entries === 5);
  app.close();
  const { port } = new URL(first.url);
  await first.close();
  const other = new Application(join(scene.dir(), "other"));
  for (let n = 0; n < 2; n++) other.write(700);
  other.close();
  for (const end of ["-wal", "-shm"]) rmSync(join(here, `db${end}`), { force: true });
  renameSync(other.path, join(here, "db"));
  const sizes = difference_bytes === undefined ? {} : { sizes: { difference_bytes } };
  const primary = await scene.start(here, { kind: "primary" }, { port: Number(port), ...sizes });
  await until("the replica follows", () => same(primary, replica)() && look(join(there, "db")).entries === 2);
  return { dirs: [here, there], primary, replica };
}

/** The entries of each copy that a node has put aside. */
function aside(dir: string): number[] {
  const folder = join(dir, ".replication", "aside");
  return readdirSync(folder).flatMap((name) => (name.endsWith(".db") ? [look(join(folder, name)).entries] : []));
}

suite("a database that is replaced while its primary is stopped", () => {
  story("as one transaction: replicas keep what they had (R8)", async (scene) => {
    const { dirs, primary } = await replaced(scene);
    assert.equal(sent(primary), 0, "no snapshot");
    assert.deepEqual(aside(dirs[1]), [5]);
    assert.ok(scene.said.some((line) => /another file took its place, .* replicas copy what they had/.test(line)));
  });

  story(
    "as a snapshot, because it is too large for one transaction: replicas keep what they had (R8)",
    async (scene) => {
      const { dirs, primary } = await replaced(scene, 0);
      assert.equal(sent(primary), 1, "a snapshot");
      assert.deepEqual(aside(dirs[1]), [5]);
    },
  );

  story(
    "on a replica: the primary's database comes back, and nothing is said to be undone on all nodes",
    async (scene) => {
      const [here, there] = [scene.dir(), scene.dir()];
      const primary = await scene.start(here, { kind: "primary" });
      const app = await scene.app(here);
      for (let n = 0; n < 5; n++) await app.write();
      const replica = await scene.start(there, { kind: "join", url: primary.url });
      await until("the replica has it", () => same(primary, replica)() && look(join(there, "db")).entries === 5);
      await replica.close();
      const older = join(scene.dir(), "older");
      const source = new DatabaseSync(join(there, "db"));
      await backup(source, older);
      source.close();
      const next = await scene.start(there, { kind: "join", url: primary.url });
      for (let n = 0; n < 3; n++) await app.write();
      await until("three more", () => same(primary, next)() && look(join(there, "db")).entries === 8);
      await next.close();
      for (const end of ["-wal", "-shm"]) rmSync(join(there, `db${end}`), { force: true });
      renameSync(older, join(there, "db"));
      const again = await scene.start(there, { kind: "join", url: primary.url });
      await until("the primary's is back", () => same(primary, again)() && look(join(there, "db")).entries === 8);
      assert.deepEqual(
        scene.said.filter((line) => /undone on all nodes|took its place/.test(line)),
        [],
      );
    },
  );

  story("a replica that got the snapshot tells it to those that follow it later (R8)", async (scene) => {
    const { dirs, primary, replica } = await replaced(scene, 0);
    await primary.close();
    await replica.close();
    const next = await scene.start(dirs[1], { kind: "primary" });
    assert.ok((next.node.directory.get("db")?.replaced_at ?? 0) > 1);
  });
});
