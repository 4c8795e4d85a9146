/** How an operation begins, ends or fails, as it is written down. */
import { ApiError } from "#core/errors.ts";
import type { Draft } from "./draft.ts";
import { clear } from "./phases.ts";
import { next } from "./states.ts";
import type { Machine, Operation } from "./types.ts";

export function begin(draft: Draft, { id }: Operation): boolean {
  const [operation] = draft.operations;
  if (operation?.id !== id || operation.begun) return false;
  // Where the table has no cell the wish is already fulfilled, or can no longer be.
  if (next(draft.machine.state, operation.kind) === undefined) draft.finish(operation);
  else draft.begin(operation);
  return true;
}

export function finish(draft: Draft, { id }: Operation): boolean {
  const operation = draft.operations.find((one) => one.id === id);
  if (!operation) return false;
  draft.finish(operation);
  return true;
}

/** It was to come up on another host, which has filled up meanwhile: it comes up where it was, and the log says so. */
export function stays(draft: Draft, { id }: Operation, reason: string): boolean {
  const [operation] = draft.operations;
  if (operation?.id !== id) return false;
  const { move_to: _, ...payload } = operation.payload;
  draft.put({ ...operation, payload });
  noteWaiting(draft, reason);
  return true;
}

/** What is to leave its host and cannot yet says so, once. */
export function noteWaiting(draft: Draft, reason: string): boolean {
  if (waitingReason(draft.machine) !== undefined) return false;
  draft.note(WAITING.type, WAITING.status, "host", { reason });
  return true;
}

const WAITING = { type: "move", status: "waiting" } as const;

/** Why a machine has not left its host yet, if that is the last that happened to it. */
export function waitingReason({ events: [last] }: Pick<Machine, "events">): string | undefined {
  return last?.type === WAITING.type && last.status === WAITING.status ? last.request?.reason : undefined;
}

export const isFull = (thrown: unknown): boolean =>
  thrown instanceof ApiError && thrown.code === "insufficient_capacity";

export function broke(draft: Draft, error: string): boolean {
  clear(draft);
  draft.hop("broke", "host", { error });
  return true;
}
