/** Fixtures of this module's tests: an application that writes, and databases wired by hand. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "#core/clock.ts";
import type { Directory } from "../node/directory.ts";
import { finish } from "../steps.ts";
import { scanTable } from "../wal/scan.ts";
import { ReplicatedDatabase } from "./database.ts";
import { createFromSnapshot, type ReceivedSnapshot, SnapshotFile } from "./received-snapshot.ts";
import { Snapshot } from "./snapshot.ts";
import type { DatabaseOptions, TransactionInfo } from "./state.ts";

/** An application: accounts whose sum never changes, a log that grows and shrinks. */
export class Application {
  readonly db: DatabaseSync;
  readonly path: string;
  #n = 0;

  constructor(path: string, page_size = 4096, timeout = 5000) {
    this.path = path;
    this.db = new DatabaseSync(path, { timeout });
    try {
      this.db.exec(`PRAGMA page_size = ${page_size}; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF`);
      this.db.exec("CREATE TABLE IF NOT EXISTS account(id INTEGER PRIMARY KEY, balance INT)");
      this.db.exec("CREATE TABLE IF NOT EXISTS entry(n INTEGER PRIMARY KEY, pad TEXT)");
      this.db.exec("INSERT OR IGNORE INTO account VALUES (1, 1000), (2, 1000), (3, 1000)");
      this.#n = Number(this.db.prepare("SELECT coalesce(max(n), 0) AS n FROM entry").get()?.["n"]);
    } catch (error) {
      this.db.close();
      throw error;
    }
  }

  /** One transaction. */
  write(bytes = 300): void {
    this.db.exec("BEGIN IMMEDIATE");
    this.#n++;
    this.db.exec(`UPDATE account SET balance = balance - 7 WHERE id = ${1 + (this.#n % 3)}`);
    this.db.exec(`UPDATE account SET balance = balance + 7 WHERE id = ${1 + ((this.#n + 1) % 3)}`);
    this.db.prepare("INSERT INTO entry VALUES (?, ?)").run(this.#n, "x".repeat(bytes));
    this.db.exec("COMMIT");
  }

  get written(): number {
    return this.#n;
  }

  close(): void {
    this.db.close();
  }
}

/** Opens what is in a directory, however long that takes. */
export function openAll(directory: Directory): ReplicatedDatabase[] {
  const opened = directory.discover();
  while (directory.unusable.length > 0) opened.push(...directory.discover());
  return opened;
}

/** What every reader must find: an intact database, in balance, with this many entries. */
export function look(path: string): { integrity: unknown; sum: unknown; entries: number } {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 2000 });
  try {
    const row = db.prepare("SELECT (SELECT sum(balance) FROM account) AS s, (SELECT count(*) FROM entry) AS n").get();
    const integrity = db.prepare("PRAGMA integrity_check").get()?.["integrity_check"];
    return { integrity, sum: row?.["s"], entries: Number(row?.["n"]) };
  } finally {
    db.close();
  }
}

/** Captures until nothing is left; one call of `capture` stops after some milliseconds. */
export function captureAll(database: ReplicatedDatabase): void {
  while (database.capture().behind > 0);
}

export interface Opened {
  database: ReplicatedDatabase;
  announced: TransactionInfo[];
}

export function open(dir: string, name: string, options: Partial<DatabaseOptions> = {}): Opened {
  const announced: TransactionInfo[] = [];
  mkdirSync(dir, { recursive: true });
  const steps = ReplicatedDatabase.opening({
    name,
    path: join(dir, name),
    dir: join(dir, ".replication", name),
    node_id: 1n,
    clock: systemClock,
    onTransactions: (infos) => announced.push(...infos),
    onFailure: (error) => {
      throw error;
    },
    ...options,
  });
  return { database: finish(steps), announced };
}

/** Asserts that the position is right: reading the whole file gives the same checksum. */
export function assertTrue({ database }: Opened): void {
  assert.ok(
    database.whileStill(() => {
      const { files, moment } = database.source;
      assert.equal(scanTable(files, moment).checksum, database.position.checksum);
    }),
  );
}

/** Everything after the replica's position, out of the primary's log. */
export function missing(primary: ReplicatedDatabase, replica: ReplicatedDatabase): Buffer[] {
  const files: Buffer[] = [];
  for (let txid = replica.position.txid + 1; txid <= primary.position.txid; txid++) {
    const ltx = primary.log.read(txid);
    assert.ok(ltx, `transaction ${txid} is in the log`);
    files.push(ltx);
  }
  return files;
}

/** A snapshot as a replica has it when all of it has come. */
export function receive(database: ReplicatedDatabase, path: string): ReceivedSnapshot {
  const snapshot = Snapshot.take(database);
  assert.ok(snapshot);
  const file = new SnapshotFile(path, snapshot.head);
  for (const run of snapshot.runs(Buffer.alloc)) file.write(run);
  snapshot.close();
  return file.verify();
}

export function replicaOf(primary: ReplicatedDatabase, dir: string): Opened {
  open(dir, "other", {}).database.close();
  createFromSnapshot(receive(primary, join(dir, "incoming")), join(dir, "db"), join(dir, ".replication", "db"));
  return open(dir, "db");
}

export function makeOther(dir: string): void {
  const db = new DatabaseSync(join(dir, "other"));
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t(x)");
  db.close();
}
