import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isBusy } from "../database/connections.ts";
import type { LeaseRow, LeaseRows } from "./lease-rows.ts";

const TRIES = 200;
const PAUSE_MS = 10;

/** Nodes that create the file concurrently conflict, and SQLite does not wait there by itself. */
function patiently(work: () => void): void {
  for (let tries = 1; ; tries++) {
    try {
      work();
      return;
    } catch (thrown) {
      if (!isBusy(thrown) || tries === TRIES) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}

/** The row in a SQLite file that all nodes of one machine reach. */
export class SqliteRows implements LeaseRows {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true });
    this.#db = new DatabaseSync(path, { timeout: 2000 });
    patiently(() =>
      this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      CREATE TABLE IF NOT EXISTS db_lease (
        id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL, term INTEGER NOT NULL,
        served_term INTEGER NOT NULL, node TEXT, url TEXT NOT NULL, reserved_for TEXT, lasts_ms INTEGER NOT NULL,
        in_sync TEXT) STRICT`),
    );
    patiently(() => this.#addColumn());
  }

  /** A file of an earlier version. */
  #addColumn(): void {
    const has = (): boolean =>
      this.#db.prepare("SELECT 1 FROM pragma_table_info('db_lease') WHERE name = 'in_sync'").get() !== undefined;
    if (has()) return;
    this.#db.exec("BEGIN IMMEDIATE");
    // Another node may have been faster.
    if (!has()) this.#db.exec("ALTER TABLE db_lease ADD COLUMN in_sync TEXT");
    this.#db.exec("COMMIT");
  }

  read(): Promise<LeaseRow | undefined> {
    return Promise.resolve(this.#db.prepare("SELECT * FROM db_lease").get() as LeaseRow | undefined);
  }

  swap(was: number, row: LeaseRow): Promise<boolean> {
    const { revision, term, served_term, node, url, reserved_for, lasts_ms, in_sync } = row;
    const values = [revision, term, served_term, node, url, reserved_for, Math.ceil(lasts_ms), in_sync];
    const { changes } =
      was === 0
        ? this.#db.prepare("INSERT OR IGNORE INTO db_lease VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)").run(...values)
        : this.#db
            .prepare(
              `UPDATE db_lease SET revision = ?, term = ?, served_term = ?, node = ?, url = ?, reserved_for = ?, lasts_ms = ?,
                 in_sync = ?
               WHERE revision = ?`,
            )
            .run(...values, was);
    return Promise.resolve(changes === 1);
  }

  close(): Promise<void> {
    this.#db.close();
    return Promise.resolve();
  }
}
