/** What a node tells the program that starts it: that applications may start, or why it cannot. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";

const NODE = join(ROOT, "src/replication/main.ts");

interface Started {
  child: ChildProcess;
  /** What it has written to descriptor 3. */
  said(): string;
}

function start(t: TestContext, args: readonly string[]): Started {
  const child = spawn(process.execPath, [NODE, ...args], { stdio: ["ignore", "ignore", "pipe", "pipe"] });
  let said = "";
  (child.stdio[3] as Readable).setEncoding("utf8").on("data", (part: string) => {
    said += part;
  });
  t.after(async () => {
    const ended = once(child, "exit");
    if (child.exitCode === null && child.kill("SIGKILL")) await ended;
  });
  return { child, said: () => said };
}

suite("starting a node", () => {
  test("a primary says that it is ready; a replica does once it has what its primary had", async (t) => {
    const [port, other] = [await freePort(), await freePort()];
    const dirs = [tempDir(), join(tempDir(), "made/by/the/node")] as const;
    const join_it = ["--listen", `127.0.0.1:${other}`, "--join", `http://127.0.0.1:${port}`, "--ready-fd", "3"];
    const replica = start(t, ["--dir", dirs[1], ...join_it]);
    const responds = (at: number) =>
      fetch(`http://127.0.0.1:${at}/info`).then(
        (answer) => answer.ok,
        () => false,
      );
    await until("the replica runs", () => responds(other));
    assert.equal(replica.said(), "", "there is no primary yet");
    const made = spawnSync("sqlite3", [join(dirs[0], "app.db"), "PRAGMA journal_mode=WAL; CREATE TABLE t (n)"]);
    assert.equal(made.status, 0, String(made.stderr));
    const primary = start(t, ["--dir", dirs[0], "--listen", `127.0.0.1:${port}`, "--primary", "--ready-fd", "3"]);
    await until("the primary is ready", () => primary.said() === "\n");
    await until("the replica is ready", () => replica.said() === "\n");
    assert.ok(existsSync(join(dirs[1], "app.db")), "its databases are there by then");
  });

  test("what a node makes as root has the owner of the directory above", { skip: notRoot() }, async (t) => {
    const [port, from, above] = [await freePort(), tempDir(), tempDir()];
    spawnSync("chown", ["1234:1235", above]);
    const made = spawnSync("sqlite3", [join(from, "app.db"), "PRAGMA journal_mode=WAL; CREATE TABLE t (n)"]);
    assert.equal(made.status, 0, String(made.stderr));
    start(t, ["--dir", from, "--listen", `127.0.0.1:${port}`, "--primary"]);
    const dir = join(above, "a/b");
    const join_it = ["--listen", "127.0.0.1:0", "--join", `http://127.0.0.1:${port}`, "--ready-fd", "3"];
    const replica = start(t, ["--dir", dir, ...join_it]);
    await until("it is ready", () => replica.said() === "\n");
    for (const name of ["", "app.db", "app.db-wal", "app.db-shm"]) {
      const { uid, gid } = statSync(join(dir, name));
      assert.deepEqual([uid, gid], [1234, 1235], name);
    }
  });

  test("a directory on a read-only volume ends it with the reason", { skip: notRoot() }, async (t) => {
    const [disk, dir] = [tempDir(), tempDir()];
    mkdirSync(join(disk, "db"));
    spawnSync("mount", ["--bind", disk, dir]);
    t.after(() => spawnSync("umount", [dir]));
    spawnSync("mount", ["-o", "remount,bind,ro", dir]);
    for (const wanted of ["db", "new"]) {
      const { child } = start(t, ["--dir", join(dir, wanted), "--listen", "127.0.0.1:0", "--primary"]);
      const [[code], words] = await Promise.all([once(child, "exit"), text(child.stderr as Readable)]);
      assert.equal(code, 2);
      assert.match(words, /cannot be written to, and a node keeps its log there: EROFS/);
    }
  });

  test("a descriptor that cannot be one is refused", () => {
    for (const wrong of ["1", "x", "99999"]) {
      const args = [NODE, "--dir", tempDir(), "--primary", "--ready-fd", wrong];
      const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
      assert.equal(status, 2);
      assert.match(stderr, /--ready-fd is the number of an open descriptor, at least 3/);
    }
  });
});

function notRoot(): string | undefined {
  return process.getuid?.() === 0 ? undefined : "it mounts and gives files away, which needs root";
}
