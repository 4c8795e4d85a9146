import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { suite } from "node:test";
import { look } from "../database/fixtures.ts";
import { same, story, until } from "./fixtures.ts";

const HOLDER = `const db = new (require("node:sqlite").DatabaseSync)(process.argv[1], { readOnly: true });
  db.prepare("SELECT count(*) FROM entry").get(); console.log("open"); setInterval(() => undefined, 1000)`;

/** How many entries a reader finds; undefined while it finds the files without their WAL. */
function entriesIn(path: string): number | undefined {
  try {
    return look(path).entries;
  } catch {
    return undefined;
  }
}

suite("WAL file deleted on a replica", () => {
  story(
    "a deleted WAL is detected, its content is in the database, and the replica goes on without a snapshot",
    async (scene) => {
      const [here, there] = [scene.dir(), scene.dir()];
      const primary = await scene.start(here, { kind: "primary" });
      const replica = await scene.start(there, { kind: "join", url: primary.url });
      const app = await scene.app(here);
      for (let n = 0; n < 20; n++) await app.write();
      await until("the replica has it", () => same(primary, replica)() && look(join(there, "db")).entries === 20);
      rmSync(join(there, "db-wal"));
      for (let n = 0; n < 20; n++) await app.write();
      await until("it follows", () => same(primary, replica)() && entriesIn(join(there, "db")) === 40);
      assert.equal(look(join(there, "db")).integrity, "ok");
      assert.deepEqual([...replica.node.directory.problems], []);
      assert.equal(primary.node.streams.snapshots_sent, 1);
    },
  );

  story(
    "a deleted WAL that a program has open is waited for and the program named; then the replica follows",
    async (scene) => {
      const [here, there] = [scene.dir(), scene.dir()];
      const primary = await scene.start(here, { kind: "primary" });
      const replica = await scene.start(there, { kind: "join", url: primary.url });
      const app = await scene.app(here);
      await app.write();
      await until("the replica has it", () => same(primary, replica)() && look(join(there, "db")).entries === 1);
      const holder = spawn(process.execPath, ["-e", HOLDER, join(there, "db")], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      scene.later(() => holder.kill("SIGKILL"));
      await once(holder.stdout, "data");
      rmSync(join(there, "db-wal"));
      const reason = (): string => replica.node.directory.problems.get("db")?.reason ?? "";
      await until("the reason names the process that has it open", () =>
        reason().includes(`process ${holder.pid} still has it open`),
      );
      await app.write();
      holder.kill("SIGKILL");
      await until("it follows", () => same(primary, replica)() && look(join(there, "db")).entries === 2);
    },
  );
});
