/**
 * Worker thread with the writing connection (group commit). Writes that arrive while it waits for the disk all go into
 * the next transaction, so that concurrent clients share one fsync.
 */
import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { assert, messageOf } from "#core/assert.ts";
import { LIMITS } from "#core/limits.ts";
import type { Outcome, Step } from "../database.ts";
import { Ballast } from "./ballast.ts";
import { commitGroup, Statements, storageTrouble, type Verdict } from "./commit.ts";
import { CommitCount } from "./commit-count.ts";
import { openConnection, type Synchronous } from "./open.ts";

export interface WriteRequest {
  id: number;
  steps: readonly Step[];
}

export type Trouble = "full" | "broken" | "bug";

export interface WriteResponse {
  id: number;
  outcome?: Outcome;
  trouble?: Trouble;
  message?: string;
}

export interface WriterData {
  file: string;
  synchronous: Synchronous;
  /** Whether to reserve space for deletes. */
  ballast: boolean;
  /** Whether to count commits in a separate file. */
  counted: boolean;
}

class Writer {
  readonly #db: DatabaseSync;
  readonly #statements: Statements;
  readonly #ballast: Ballast | undefined;
  readonly #counted: CommitCount | undefined;
  /** Why nothing is written any more: a successful commit after a failed one proves nothing. */
  #broken: string | undefined;
  #full = false;

  constructor(db: DatabaseSync, ballast: Ballast | undefined, counted: CommitCount | undefined) {
    this.#db = db;
    this.#counted = counted;
    this.#statements = new Statements(db);
    this.#ballast = ballast;
  }

  answer(group: readonly WriteRequest[]): WriteResponse[] {
    if (this.#broken !== undefined) return refuseAll(group, "broken", this.#broken);
    const answers = this.#commit(group);
    const full = answers[0]?.trouble === "full";
    // There is space again, so the ballast is refilled.
    if (this.#full && !full) this.#ballast?.fill();
    this.#full = full;
    return full ? this.#freeing(group, answers) : answers;
  }

  /** On a full disk, deletes use the reserved space. */
  #freeing(group: readonly WriteRequest[], refusals: WriteResponse[]): WriteResponse[] {
    const urgent = group.filter(({ steps }) => steps.some(({ sql }) => /^\s*DELETE\b/i.test(sql)));
    if (urgent.length === 0 || !this.#ballast) return refusals;
    const answers = this.#ballast.spend(() => {
      const committed = this.#commit(urgent);
      this.#checkpoint();
      return committed;
    });
    const outcomes = new Map(answers.map((answer) => [answer.id, answer]));
    return refusals.map((refusal) => outcomes.get(refusal.id) ?? refusal);
  }

  /** After a checkpoint the WAL is reused from its beginning and stops growing. */
  #checkpoint(): void {
    try {
      this.#db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (thrown) {
      // Without space the WAL stays as it is.
      if (storageTrouble(thrown) !== "full") this.#broken = messageOf(thrown);
    }
  }

  #commit(group: readonly WriteRequest[]): WriteResponse[] {
    try {
      const steps = group.map((request) => request.steps);
      const verdicts = commitGroup(this.#db, this.#statements, steps, this.#counted);
      return group.map(({ id }, index) => toResponse(id, verdicts[index]));
    } catch (thrown) {
      const trouble = storageTrouble(thrown) ?? "bug";
      if (trouble === "broken") this.#broken = messageOf(thrown);
      return refuseAll(group, trouble, messageOf(thrown));
    }
  }
}

function refuseAll(group: readonly WriteRequest[], trouble: Trouble, message: string): WriteResponse[] {
  return group.map(({ id }) => ({ id, trouble, message }));
}

function toResponse(id: number, verdict: Verdict | undefined): WriteResponse {
  assert(verdict, "every write of a group has a verdict");
  if ("outcome" in verdict) return { id, outcome: verdict.outcome };
  return { id, trouble: "bug", message: messageOf(verdict.error) };
}

function serve(port: MessagePort, { file, synchronous, ballast, counted }: WriterData): void {
  const db = openConnection(file, synchronous);
  const room = ballast ? new Ballast(`${file}-ballast`) : undefined;
  const count = counted ? new CommitCount(db, file) : undefined;
  const writer = new Writer(db, room, count);

  port.on("message", (first: WriteRequest | "close") => {
    const group: WriteRequest[] = [];
    let next: WriteRequest | "close" | undefined = first;
    while (next !== undefined && next !== "close") {
      group.push(next);
      if (group.length >= LIMITS.group_commit) break;
      next = (receiveMessageOnPort(port) as { message: WriteRequest | "close" } | undefined)?.message;
    }
    if (group.length > 0) port.postMessage(writer.answer(group));
    if (next === "close") {
      db.close();
      count?.close();
      port.close();
    }
  });
  port.postMessage([]); // Ready: the file is open.
  room?.fillSoon();
  if (room) boundLog(db, room.bytes);
}

/**
 * On a small disk the WAL is checkpointed before that needs more space than the ballast: on a full disk it would be
 * impossible, while each delete grows the WAL.
 */
function boundLog(db: DatabaseSync, ballast_bytes: number): void {
  const page_bytes = Number(db.prepare("PRAGMA page_size").get()?.["page_size"]);
  const pages = Math.floor(ballast_bytes / 2 / page_bytes);
  const usual = Number(db.prepare("PRAGMA wal_autocheckpoint").get()?.["wal_autocheckpoint"]);
  if (pages > 0 && pages < usual) db.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
}

assert(parentPort, "the writer runs in a worker thread");
serve(parentPort, workerData as WriterData);
