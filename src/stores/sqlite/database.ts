import type { DatabaseSync, StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { assert, messageOf } from "#core/assert.ts";
import { StoreError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { DataDirError } from "../data-dir.ts";
import type { Database, Outcome, Step, Value } from "../database.ts";
import { DatabaseCheck } from "./check.ts";
import { Statements, storageTrouble } from "./commit.ts";
import { openConnection, type Synchronous } from "./open.ts";
import type { Trouble, WriteRequest, WriteResponse, WriterData } from "./writer.ts";

interface Waiting {
  resolve(outcome: Outcome): void;
  reject(error: Error): void;
}

interface Reader {
  db: DatabaseSync;
  statements: Statements;
  version: StatementSync;
}

function openReader(file: string): Reader {
  const db = openConnection(file);
  db.exec("PRAGMA query_only = ON");
  return { db, statements: new Statements(db), version: db.prepare("PRAGMA data_version") };
}

/** SQLite in WAL mode: reads on this thread, writes in groups on another. */
export async function openSqlite(
  file: string,
  options: { synchronous?: Synchronous; ballast?: boolean; checked?: boolean; onBroken?: (error: Error) => void } = {},
): Promise<Database> {
  const { synchronous = "FULL", ballast = false, checked = false } = options;
  const check = checked ? new DatabaseCheck(file) : undefined;
  await check?.start();
  const workerData: WriterData = { file, synchronous, ballast, counted: checked };
  const worker = new Worker(new URL("./writer.ts", import.meta.url), { workerData, name: "sqlite-writer" });
  const database = new SqliteDatabase(file, worker, options.onBroken ?? (() => {}), check);
  try {
    await database.ready;
  } catch (cause) {
    throw new DataDirError(`the database ${file} cannot be opened: ${messageOf(cause)}`, { cause });
  }
  return database;
}

class SqliteDatabase implements Database {
  readonly ready: Promise<void>;
  readonly #file: string;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #onBroken: (error: Error) => void;
  readonly #check: DatabaseCheck | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #reader: Reader | undefined;
  #version: number | undefined;
  #lastId = 0;
  /** Why no more writes are accepted. */
  #ended: Error | undefined;

  constructor(file: string, worker: Worker, onBroken: (error: Error) => void, check?: DatabaseCheck) {
    this.#file = file;
    this.#check = check;
    check?.done.catch((error: unknown) => this.#break(new Error(messageOf(error), { cause: error })));
    this.#worker = worker;
    this.#onBroken = onBroken;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    let ready = false;
    this.#exited = new Promise((done) => worker.once("exit", () => done()));
    worker.on("message", (answers: WriteResponse[]) => {
      ready = true;
      resolve();
      this.#version = undefined;
      for (const answer of answers) this.#settle(answer);
    });
    worker.on("error", (cause) => {
      // Before it is ready only `open` rejects.
      if (!ready) reject(cause);
      else this.#break(new StoreError("storage_failed", "the store's writer stopped", { cause }));
    });
  }

  async read<Row>(sql: string, args: readonly Value[] = []): Promise<Row[]> {
    return this.#reading(({ statements }) => statements.get(sql).all(...args) as Row[]);
  }

  /**
   * data_version of this connection, which never writes: it changes with others' commits. Read once per turn of the
   * event loop, and again after an acknowledged write, so that a caller that knows of a commit gets no older value.
   */
  version(): number {
    if (this.#version === undefined) {
      this.#version = this.#reading(({ version }) => (version.get() as { data_version: number }).data_version);
      setImmediate(() => {
        this.#version = undefined;
      });
    }
    return this.#version;
  }

  #reading<Result>(work: (reader: Reader) => Result): Result {
    try {
      this.#reader ??= openReader(this.#file);
      return work(this.#reader);
    } catch (thrown) {
      const trouble = storageTrouble(thrown);
      if (!trouble) throw thrown;
      const error = troubleError(trouble, messageOf(thrown));
      // A disk that cannot be read is not written to either.
      if (trouble === "broken") this.#break(error);
      throw error;
    }
  }

  async write(steps: readonly Step[]): Promise<Outcome> {
    if (this.#ended) throw this.#ended;
    if (this.#waiting.size >= LIMITS.write_queue) {
      throw new StoreError("overloaded", `more than ${LIMITS.write_queue} writes are waiting (limit write_queue)`, {
        retry_after_s: 1,
      });
    }
    const request: WriteRequest = { id: ++this.#lastId, steps };
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    this.#waiting.set(request.id, { resolve, reject });
    this.#worker.postMessage(request);
    return await promise;
  }

  async *snapshot(tables: readonly string[]): AsyncIterable<{ table: string; row: Record<string, Value> }> {
    const db = openConnection(this.#file);
    try {
      db.exec("BEGIN"); // The first read fixes the snapshot.
      for (const table of tables) {
        for (const row of db.prepare(`SELECT * FROM ${table}`).iterate()) {
          yield { table, row: row as Record<string, Value> };
        }
      }
    } finally {
      db.close();
    }
  }

  async close(): Promise<void> {
    this.#ended ??= new StoreError("shutting_down", "the store is closed");
    await this.#check?.close();
    // Messages are ordered, so earlier writes finish first.
    this.#worker.postMessage("close");
    await this.#exited;
    this.#reader?.db.close();
    this.#reader = undefined;
  }

  #settle({ id, outcome, trouble, message }: WriteResponse): void {
    const waiting = this.#waiting.get(id);
    if (!waiting && this.#ended) return; // Already reported when the store broke.
    assert(waiting, `write ${id} is waited for`);
    this.#waiting.delete(id);
    if (outcome) {
      waiting.resolve(outcome);
      return;
    }
    const error = troubleError(trouble ?? "bug", message ?? "");
    waiting.reject(error);
    if (trouble === "broken") this.#break(error);
  }

  /** After an I/O error the disk's content is unknown: no more writes, never a retried fsync. */
  #break(error: Error): void {
    if (this.#ended) return;
    this.#ended = error;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
    this.#onBroken(error);
  }
}

function troubleError(trouble: Trouble, message: string): Error {
  switch (trouble) {
    case "bug":
      return new Error(`the store refused a statement: ${message}`);
    case "full":
      return new StoreError("storage_full", "the disk that holds the data dir is full; nothing was changed", {
        hint: "free some disk space; the platform then continues",
        retry_after_s: 5,
      });
    case "broken":
      return new StoreError("storage_failed", `the disk failed: ${message}`);
  }
}
