import pg from "pg";
import type { Value } from "../database.ts";
import { type Deadline, DeadlineError, timeLeft } from "./deadline.ts";
import type { Statement } from "./statements.ts";

/** All stored numbers fit a double; the driver would return BIGINT as strings. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

export type Rows = Record<string, Value>[];

interface Column {
  name: string;
  dataTypeID: number;
}

/** The part of the driver's connection that a batch uses. */
interface ProtocolConnection {
  stream: { cork(): void; uncork(): void; write(bytes: Buffer, onWritten: (error?: Error | null) => void): void };
  parse(message: { name: string; text: string; types: number[] }): void;
  bind(message: { portal: string; statement: string; values: unknown[]; binary: boolean }): void;
  describe(message: { type: "P"; name: string }): void;
  execute(message: { portal: string; rows: number }): void;
  on(event: "parseComplete", listener: () => void): void;
  off(event: "parseComplete", listener: () => void): void;
}

/** Ends a batch; without it the server commits nothing. */
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);

/** How a batch failed: the error, and how many statements had completed. */
export class BatchError extends Error {
  override readonly name = "BatchError";
  override readonly cause: Error;
  readonly completed: number;
  /** `unsent`: the server did not receive all of it. `refused`: the server reported an error. `lost`: the connection broke. */
  readonly how: "unsent" | "refused" | "lost";

  constructor(cause: Error, completed: number, how: BatchError["how"]) {
    super(cause.message);
    this.cause = cause;
    this.completed = completed;
    this.how = how;
  }
}

/**
 * Pipelines several statements with one Sync: the server runs them as one transaction, skips the rest after an error,
 * and commits at the Sync. One round trip, without idle time in the transaction.
 */
export class Batch implements pg.Submittable {
  readonly done: Promise<Rows[]>;
  readonly #statements: readonly Statement[];
  /** Statements prepared on this connection. */
  readonly #parsed: Set<string>;
  readonly #deadline: Deadline;
  readonly #results: Rows[] = [];
  #rows: Rows = [];
  #columns: { name: string; read: (text: string) => Value }[] = [];
  #end = Promise.withResolvers<Rows[]>();
  /** The kernel has all of it. */
  #sent = false;
  #over: () => void = () => {};

  constructor(statements: readonly Statement[], parsed: Set<string>, deadline: Deadline) {
    this.#statements = statements;
    this.#parsed = parsed;
    this.#deadline = deadline;
    this.done = this.#end.promise;
  }

  /** Sends nothing past the deadline: until now this process may have been stopped, or the connection busy. */
  submit(given: pg.Connection): Error | undefined {
    if (timeLeft(this.#deadline) === 0) return new DeadlineError("connection");
    const connection = given as unknown as ProtocolConnection;
    const parsing: string[] = [];
    const onParsed = (): void => {
      const name = parsing.shift();
      if (name) this.#parsed.add(name);
    };
    connection.on("parseComplete", onParsed);
    this.#over = () => connection.off("parseComplete", onParsed);
    // In one write: the kernel has all or nothing, even if this process is stopped right after.
    connection.stream.cork();
    const requested = new Set<string>();
    for (const { name, text, values } of this.#statements) {
      if (name === "" || !(this.#parsed.has(name) || requested.has(name))) {
        connection.parse({ name, text, types: [] });
        parsing.push(name);
        requested.add(name);
      }
      connection.bind({ portal: "", statement: name, values: [...values], binary: false });
      connection.describe({ type: "P", name: "" });
      connection.execute({ portal: "", rows: 0 });
    }
    connection.stream.write(SYNC, (error) => {
      this.#sent = !error;
    });
    connection.stream.uncork();
    return undefined;
  }

  // Called by the driver, by these names.

  handleRowDescription({ fields }: { fields: Column[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({
      name,
      read: types.getTypeParser(dataTypeID, "text") as unknown as (text: string) => Value,
    }));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const row: Record<string, Value> = {};
    for (const [index, { name, read }] of this.#columns.entries()) {
      const text = fields[index] ?? null;
      row[name] = text === null ? null : read(text);
    }
    this.#rows.push(row);
  }

  handleCommandComplete(): void {
    this.#results.push(this.#rows);
    this.#rows = [];
    this.#columns = [];
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete();
  }

  handlePortalSuspended(): void {}

  handleError(error: Error): void {
    this.#over();
    // Only the server's own errors have a severity; others concern the connection.
    const broken = this.#sent ? "lost" : "unsent";
    this.#end.reject(new BatchError(error, this.#results.length, "severity" in error ? "refused" : broken));
  }

  handleReadyForQuery(): void {
    this.#over();
    this.#end.resolve(this.#results);
  }
}
