/**
 * The thread that owns the writing connection. While it waits for the disk, more writes arrive; it takes all
 * of them into the next transaction. So one client pays one fsync per write, and sixty-four share one.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { assert, messageOf } from "#core/assert.ts";
import { LIMITS } from "#core/limits.ts";
import type { Outcome, Step } from "../database.ts";
import { commitGroup, Statements, storageTrouble, type Verdict } from "./commit.ts";
import { openConnection, type Synchronous } from "./open.ts";

export interface WriteRequest {
  id: number;
  steps: readonly Step[];
}

export type Trouble = "full" | "broken" | "bug";

export interface WriteAnswer {
  id: number;
  outcome?: Outcome;
  trouble?: Trouble;
  message?: string;
}

export interface WriterData {
  file: string;
  synchronous: Synchronous;
}

function serve(port: MessagePort, { file, synchronous }: WriterData): void {
  const db = openConnection(file, synchronous);
  const statements = new Statements(db);
  /** Why nothing is written any more: a commit that works after one that failed would prove nothing. */
  let broken: string | undefined;

  const answer = (group: readonly WriteRequest[]): WriteAnswer[] => {
    if (broken !== undefined) return refuseAll(group, "broken", broken);
    try {
      const verdicts = commitGroup(
        db,
        statements,
        group.map((request) => request.steps),
      );
      return group.map(({ id }, index) => toAnswer(id, verdicts[index]));
    } catch (thrown) {
      const trouble = storageTrouble(thrown) ?? "bug";
      if (trouble === "broken") broken = messageOf(thrown);
      return refuseAll(group, trouble, messageOf(thrown));
    }
  };

  port.on("message", (first: WriteRequest | "close") => {
    const group: WriteRequest[] = [];
    let next: WriteRequest | "close" | undefined = first;
    while (next !== undefined && next !== "close") {
      group.push(next);
      if (group.length >= LIMITS.group_commit) break;
      next = (receiveMessageOnPort(port) as { message: WriteRequest | "close" } | undefined)?.message;
    }
    if (group.length > 0) port.postMessage(answer(group));
    if (next === "close") {
      db.close();
      port.close();
    }
  });
  port.postMessage([]); // Ready: the file is open.
}

function refuseAll(group: readonly WriteRequest[], trouble: Trouble, message: string): WriteAnswer[] {
  return group.map(({ id }) => ({ id, trouble, message }));
}

function toAnswer(id: number, verdict: Verdict | undefined): WriteAnswer {
  assert(verdict, "every write of a group has a verdict");
  if ("outcome" in verdict) return { id, outcome: verdict.outcome };
  return { id, trouble: "bug", message: messageOf(verdict.error) };
}

assert(parentPort, "the writer runs in a worker thread");
serve(parentPort, workerData as WriterData);
