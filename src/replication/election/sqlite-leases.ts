import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Clock } from "#core/clock.ts";
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

interface Row {
  node: string | null;
  url: string;
  term: number;
  /** The last term that had a primary. */
  served_term: number;
  expires_ms: number;
  reserved_for: string | null;
  reserved_until_ms: number;
}

/** The lease as one row of a SQLite file that all nodes of one machine reach. Its clock is the machine's. */
export class SqliteLeases implements LeaseStore {
  readonly #db: DatabaseSync;
  readonly #clock: Clock;

  constructor(path: string, clock: Clock) {
    mkdirSync(dirname(path), { recursive: true });
    this.#clock = clock;
    this.#db = new DatabaseSync(path, { timeout: 2000 });
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      CREATE TABLE IF NOT EXISTS lease (
        id INTEGER PRIMARY KEY CHECK (id = 1), node TEXT, url TEXT NOT NULL, term INTEGER NOT NULL,
        served_term INTEGER NOT NULL, expires_ms INTEGER NOT NULL, reserved_for TEXT, reserved_until_ms INTEGER NOT NULL) STRICT;
      INSERT OR IGNORE INTO lease VALUES (1, NULL, '', 0, 0, 0, NULL, 0)`);
  }

  acquire({ node, url, complete_term }: Candidate, ttl_ms: number, force = false): Promise<Lease | undefined> {
    return this.#change((row, now_ms) => {
      const taken = row.node !== null && row.node !== node && row.expires_ms > now_ms;
      const reserved = row.reserved_for !== null && row.reserved_for !== node && row.reserved_until_ms > now_ms;
      if (taken || reserved || (complete_term < row.served_term && !force)) return undefined;
      const term = row.term + 1;
      this.#db
        .prepare("UPDATE lease SET node = ?, url = ?, term = ?, expires_ms = ?, reserved_for = NULL")
        .run(node, url, term, Math.ceil(now_ms + ttl_ms));
      return { node, url, term };
    });
  }

  renew(lease: Lease, ttl_ms: number): Promise<boolean> {
    return this.#change((row, now_ms) => {
      if (!isThis(row, lease) || row.expires_ms <= now_ms) return false;
      this.#db.prepare("UPDATE lease SET expires_ms = ?, served_term = term").run(Math.ceil(now_ms + ttl_ms));
      return true;
    });
  }

  release(lease: Lease, successor?: { node: string; for_ms: number }): Promise<void> {
    return this.#change((row, now_ms) => {
      if (!isThis(row, lease)) return;
      this.#db
        .prepare("UPDATE lease SET node = NULL, expires_ms = 0, reserved_for = ?, reserved_until_ms = ?")
        .run(successor?.node ?? null, Math.ceil(now_ms + (successor?.for_ms ?? 0)));
    });
  }

  holder(): Promise<Lease | undefined> {
    return this.#change((row, now_ms) => {
      if (row.node === null || row.expires_ms <= now_ms) return undefined;
      return { node: row.node, url: row.url, term: row.term };
    });
  }

  close(): Promise<void> {
    this.#db.close();
    return Promise.resolve();
  }

  /** Reads the row and acts on it in one transaction, so that nobody comes between. */
  #change<T>(act: (row: Row, now_ms: number) => T): Promise<T> {
    return new Promise((done) => {
      this.#db.exec("BEGIN IMMEDIATE");
      try {
        const row = this.#db.prepare("SELECT * FROM lease").get() as unknown as Row;
        const result = act(row, this.#clock.now());
        this.#db.exec("COMMIT");
        done(result);
      } catch (error) {
        this.#db.exec("ROLLBACK");
        throw error;
      }
    });
  }
}

function isThis(row: Row, lease: Lease): boolean {
  return row.node === lease.node && row.term === lease.term;
}
