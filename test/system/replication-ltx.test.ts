/** What nodes keep and back up, judged by the reference `ltx` tool of the people who made the format. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { suite, test } from "node:test";
import { build } from "../../bench/replication/go-program.ts";
import { until } from "../support.ts";
import { addNote, appsMissing, makeNotes, nodePair, sqlite } from "./replication-apps.ts";

const LTX = { module: "github.com/superfly/ltx", version: "v0.5.3", command: "cmd/ltx" };
const built = await build(LTX);
const program = "program" in built ? built.program : "";
const ltx = (...args: string[]): string => execFileSync(program, args, { encoding: "utf8" });

/** The record before each LTX file in a segment, and where its length is: docs/replication.md. */
const RECORD_BYTES = 48;
const LENGTH_AT = 4;
/** The first transaction, in an LTX file. */
const MIN_TXID_AT = 16;

/** Writes the LTX files after `txid` in the log of a node's `db` to files of their own, in order. */
function loggedFiles(node_dir: string, txid: bigint, to: string): string[] {
  const log = join(node_dir, ".replication/dbs/db/log");
  const made: string[] = [];
  for (const name of readdirSync(log).sort()) {
    const bytes = readFileSync(join(log, name));
    for (let at = 0; at < bytes.length; ) {
      const end = at + RECORD_BYTES + bytes.readUInt32BE(at + LENGTH_AT);
      const file = bytes.subarray(at + RECORD_BYTES, end);
      at = end;
      if (file.readBigUInt64BE(MIN_TXID_AT) <= txid) continue;
      made.push(join(to, `${String(made.length).padStart(6, "0")}.ltx`));
      writeFileSync(made.at(-1) ?? "", file);
    }
  }
  return made;
}

/** Snapshot and changes in a backup of `db`, in order. */
const storedFiles = (backup: string): string[] =>
  ["snapshot", "changes"].flatMap((kind) => {
    const folder = join(backup, "db", kind);
    // The first backup makes it.
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .filter((name) => name.endsWith(".ltx"))
      .sort()
      .map((name) => join(folder, name));
  });

suite("LTX files, judged by the reference ltx tool", {
  timeout: 1_800_000,
  skip: "reason" in built ? built.reason : appsMissing(),
}, () => {
  for (const page_size of [4096, 512]) {
    test(`it verifies logs and backups, and applies them to the same file, pages of ${page_size} bytes`, async (t) => {
      const pair = await nodePair(t);
      const backup = pair.stage.dir();
      const path = pair.path("primary", "db");
      const address = `127.0.0.1:${pair.ports.primary}`;
      const primary = pair.stage.node(pair.dirs.primary, pair.ports.primary, "--primary", "--backup", backup);
      await until(`${address} answers`, async () => (await pair.info("primary")) !== undefined);
      const replica = await pair.start("replica");
      makeNotes(path, 3000, page_size);
      await pair.caughtUp("db", 3000);
      // What comes after the snapshot is kept as changes.
      await until("the first backup", () => storedFiles(backup).length > 0);
      for (let n = 0; n < 20; n++) addNote(path, `note ${n}`);
      // Fewer pages than before: files that end a database earlier.
      sqlite(path, "DELETE FROM notes WHERE n > 100; CREATE INDEX by_text ON notes (text)");
      sqlite(path, "VACUUM");
      addNote(path, "the last one");
      await pair.caughtUp("db", 101);
      const position = (await pair.info("primary"))?.databases["db"] ?? "";
      const [, checksum = ""] = position.split("/");
      const last = position.slice(0, 16);
      await until("the backup has it", () => storedFiles(backup).some((file) => file.includes(last)));
      await Promise.all([primary.end(), replica.end()]);
      assert.deepEqual(readFileSync(pair.path("replica", "db")), readFileSync(path));
      const [snapshot = ""] = storedFiles(backup);
      const txid = BigInt(`0x${basename(snapshot).slice(0, 16)}`);
      const logged = (dir: string): string[] => [snapshot, ...loggedFiles(dir, txid, pair.stage.dir())];
      for (const files of [logged(pair.dirs.primary), logged(pair.dirs.replica), storedFiles(backup)]) {
        t.diagnostic(`${files.length} files`);
        assert.ok(files.length > 1);
        for (const file of files) ltx("verify", file);
        const applied = join(pair.stage.dir(), "applied");
        ltx("apply", "-db", applied, ...files);
        assert.ok(readFileSync(applied).equals(readFileSync(path)), "the same bytes");
        assert.ok(ltx("checksum", applied).includes(checksum), "the same checksum");
      }
      const bytes = readFileSync(snapshot);
      bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1);
      writeFileSync(snapshot, bytes);
      assert.throws(() => ltx("verify", snapshot), "one changed bit is found");
    });
  }
});
