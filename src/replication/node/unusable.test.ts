/** Repairs of unusable databases by an operator, and what the nodes report meanwhile. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite } from "node:test";
import type { RunningNode } from "../commands.ts";
import { Application, look } from "../database/fixtures.ts";
import { NO_PAGES } from "../position.ts";
import { Directory } from "./directory.ts";
import { type Scene, same, sent, story, until } from "./fixtures.ts";

const stateOf = ({ node }: RunningNode, name = "db"): string | undefined => node.directory.problems.get(name)?.state;

interface Pair {
  dirs: [primary: string, replica: string];
  primary: RunningNode;
  replica: RunningNode;
  /** Four entries, as a file. */
  file: Buffer;
}

/** A primary and a replica that have a database of four entries, which no application has open. */
async function pairOf(scene: Scene): Promise<Pair> {
  const [here, there] = [scene.dir(), scene.dir()];
  const primary = await scene.start(here, { kind: "primary" });
  const replica = await scene.start(there, { kind: "join", url: primary.url });
  const app = await scene.app(here);
  for (let n = 0; n < 4; n++) await app.write();
  app.close();
  await until("the replica has it", () => same(primary, replica)() && look(join(there, "db")).entries === 4);
  const file = Buffer.from(await (await fetch(`${primary.url}/export?name=db`)).arrayBuffer());
  return { dirs: [here, there], primary, replica, file };
}

const importInto = ({ primary }: Pair, body: Buffer): Promise<Response> =>
  fetch(`${primary.url}/import?name=db`, { method: "POST", body });

suite("databases that cannot be used", () => {
  story("an import replaces a damaged one, which is moved aside, and its transactions continue (R7)", async (scene) => {
    const pair = await pairOf(scene);
    const { primary, replica, dirs } = pair;
    const before = primary.node.directory.get("db")?.position.txid ?? 0;
    writeFileSync(
      join(dirs[0], ".replication", "garbage"),
      Buffer.concat([pair.file.subarray(0, 100), Buffer.alloc(9000, 7)]),
    );
    renameSync(join(dirs[0], ".replication", "garbage"), join(dirs[0], "db"));
    await until("it is damaged", () => stateOf(primary) === "damaged");
    const healed = await importInto(pair, pair.file);
    assert.equal(healed.status, 200, await healed.text());
    await until("it is open everywhere", () => stateOf(primary) === undefined && same(primary, replica)());
    assert.ok((primary.node.directory.get("db")?.position.txid ?? 0) >= before, "its count goes on");
    for (const dir of dirs)
      assert.deepEqual(look(join(dir, "db")), { ...look(join(dir, "db")), entries: 4, integrity: "ok" });
    assert.equal(readFileSync(join(dirs[0], ".replication", "aside", "db-0-0.db")).at(-1), 7);
  });

  story(
    "an import waits for a short transaction, and is 409 for a long one; nothing is changed then",
    async (scene) => {
      const pair = await pairOf(scene);
      const holder = new DatabaseSync(join(pair.dirs[0], "db"));
      scene.later(() => holder.close());
      await until("it has the lock", () => locked(holder));
      const position = pair.primary.node.directory.get("db")?.position;
      const refused = await importInto(pair, pair.file);
      assert.equal(refused.status, 409);
      assert.match(await refused.text(), /an application holds the write lock of db; end that transaction/);
      assert.deepEqual(pair.primary.node.directory.get("db")?.position, position);
      const waiting = importInto(pair, pair.file);
      holder.exec("ROLLBACK");
      assert.equal((await waiting).status, 200);
    },
  );

  story(
    "a replica's 'kept' ends when the primary has the database again, without a transaction (R6)",
    async (scene) => {
      const { primary, replica, dirs } = await pairOf(scene);
      const port = Number(new URL(primary.url).port);
      await primary.close();
      const holder = new DatabaseSync(join(dirs[0], "db"));
      scene.later(() => holder.close());
      holder.exec("BEGIN IMMEDIATE");
      const again = await scene.start(dirs[0], { kind: "primary" }, { port });
      await until("it is kept", () => stateOf(again) === "busy" && stateOf(replica) === "kept");
      holder.exec("ROLLBACK");
      await until("it is open", () => stateOf(again) === undefined && same(again, replica)());
      await until("it is not kept any more", () => stateOf(replica) === undefined);
      assert.equal(sent(again), 0, "no snapshot was needed");
    },
  );

  story(
    "control: a primary that reports an unopened database as deleted removes the replica's file (R6)",
    async (scene) => {
      const { primary, replica, dirs } = await pairOf(scene);
      const port = Number(new URL(primary.url).port);
      await primary.close();
      rmSync(join(dirs[0], "db"));
      const { deletedAt } = Directory.prototype;
      scene.later(() => {
        Directory.prototype.deletedAt = deletedAt;
      });
      Directory.prototype.deletedAt = () => ({ txid: 1000, checksum: NO_PAGES });
      await scene.start(dirs[0], { kind: "primary" }, { port });
      await until("it is removed", () => !replica.node.directory.get("db"));
      assert.ok(!existsSync(join(dirs[1], "db")));
      assert.equal(
        readdirSync(join(dirs[1], ".replication", "aside")).filter((name) => name.endsWith(".db")).length,
        1,
      );
    },
  );

  story("a deletion that does not follow from what the replica has takes nothing away (R6)", async (scene) => {
    const { primary, replica, dirs } = await pairOf(scene);
    const { port } = new URL(primary.url);
    await primary.close();
    rmSync(join(dirs[0], "db"));
    const { deletedAt } = Directory.prototype;
    scene.later(() => {
      Directory.prototype.deletedAt = deletedAt;
    });
    const { txid } = replica.node.directory.get("db")?.position ?? assert.fail("it has none");
    // One before what is here, and one that is no deletion.
    for (const at of [
      { txid, checksum: NO_PAGES },
      { txid: txid + 1, checksum: NO_PAGES + 1n },
    ]) {
      Directory.prototype.deletedAt = () => at;
      replica.node.directory.problems.clear("db");
      const again = await scene.start(dirs[0], { kind: "primary" }, { port: Number(port) });
      await until("it is kept", () => stateOf(replica) === "kept");
      assert.equal(look(join(dirs[1], "db")).entries, 4);
      await again.close();
    }
  });

  story("a snapshot of a database that the replica cannot open now does not overwrite it (R6)", async (scene) => {
    const { primary, replica, dirs } = await pairOf(scene);
    const there = join(dirs[1], "db");
    await replica.close();
    const holder = new DatabaseSync(there);
    scene.later(() => holder.close());
    holder.exec("BEGIN IMMEDIATE");
    const { ino } = statSync(there);
    const again = await scene.start(dirs[1], { kind: "join", url: primary.url });
    await until("it is busy", () => stateOf(again) === "busy" && primary.node.streams.replicas.length === 1);
    // Whatever it has said of it, this primary sends it all the same.
    const before = sent(primary);
    assert.ok(primary.node.streams.place(primary.node.streams.replicas[0]?.node ?? "", "db", undefined));
    await until("it was sent", () => sent(primary) > before);
    const app = await scene.app(dirs[0]);
    await app.write();
    app.close();
    holder.exec("ROLLBACK");
    await until("it follows", () => same(primary, again)() && look(there).entries === 5);
    assert.equal(statSync(there).ino, ino, "it is the same file");
  });

  story("a file copied over the primary's is found, and becomes the truth on all nodes (R7)", async (scene) => {
    const { primary, replica, dirs } = await pairOf(scene);
    const other = new Application(join(scene.dir(), "other"));
    for (let n = 0; n < 2; n++) other.write();
    other.db.exec("PRAGMA journal_mode = DELETE");
    other.close();
    // By another process: closing the file in this one would drop the node's locks.
    execFileSync("cp", [other.path, join(dirs[0], "db")]);
    const has = (dir: string): boolean => {
      try {
        return look(join(dir, "db")).entries === 2;
      } catch {
        return false;
      }
    };
    await until("both have it", () => stateOf(primary) === undefined && same(primary, replica)() && dirs.every(has));
  });

  story("a file removed on a replica comes back; one that the primary does not have is forgotten", async (scene) => {
    const { primary, replica, dirs } = await pairOf(scene);
    const [here, there] = dirs;
    const remove = (dir: string): void => {
      for (const end of ["", "-wal", "-shm"]) rmSync(join(dir, `db${end}`), { force: true });
    };
    const before = sent(primary);
    remove(there);
    await until("it is back", () => sent(primary) === before + 1 && same(primary, replica)());
    assert.equal(look(join(there, "db")).entries, 4);
    const port = Number(new URL(primary.url).port);
    await primary.close();
    remove(here);
    const again = await scene.start(here, { kind: "primary" }, { port });
    await until("it is kept", () => stateOf(replica) === "kept");
    assert.equal(stateOf(again), "missing");
    remove(there);
    await until("it is forgotten", () => stateOf(replica) === undefined && !replica.node.directory.get("db"));
    await replica.close();
    const restarted = await scene.start(there, { kind: "join", url: again.url });
    await until("it follows", () => again.node.streams.replicas.length === 1);
    assert.equal(stateOf(restarted), undefined);
  });
});

function locked(db: DatabaseSync): boolean {
  try {
    db.exec("BEGIN IMMEDIATE");
    return true;
  } catch {
    return false;
  }
}
