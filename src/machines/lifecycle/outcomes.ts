/** Records how an operation begins, finishes or fails. */
import { ApiError } from "#core/errors.ts";
import type { Machine, Operation } from "../types.ts";
import { clear } from "./phases.ts";
import { next } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";

export function begin(transaction: MachineTransaction, { id }: Operation): boolean {
  const [operation] = transaction.operations;
  if (operation?.id !== id || operation.begun) return false;
  // Without an entry in the state table, the action is already done or no longer possible.
  if (next(transaction.machine.state, operation.kind) === undefined) transaction.finish(operation);
  else transaction.begin(operation);
  return true;
}

export function finish(transaction: MachineTransaction, { id }: Operation): boolean {
  const operation = transaction.operations.find((one) => one.id === id);
  if (!operation) return false;
  transaction.finish(operation);
  return true;
}

/** The chosen host has no capacity any more: the machine starts on its old host, and an event says so. */
export function stays(transaction: MachineTransaction, { id }: Operation, reason: string): boolean {
  const [operation] = transaction.operations;
  if (operation?.id !== id) return false;
  const { move_to: _, ...payload } = operation.payload;
  transaction.put({ ...operation, payload });
  recordWaiting(transaction, reason);
  return true;
}

/** Records once why a machine cannot leave its host yet. */
export function recordWaiting(transaction: MachineTransaction, reason: string): boolean {
  if (waitingReason(transaction.machine) !== undefined) return false;
  transaction.recordEvent(WAITING.type, WAITING.status, "host", { reason });
  return true;
}

const WAITING = { type: "move", status: "waiting" } as const;

/** Why a machine has not left its host yet, if that is its last event. */
export function waitingReason({ events: [last] }: Pick<Machine, "events">): string | undefined {
  return last?.type === WAITING.type && last.status === WAITING.status ? last.request?.reason : undefined;
}

export const isFull = (thrown: unknown): boolean =>
  thrown instanceof ApiError && thrown.code === "insufficient_capacity";

export function fail(transaction: MachineTransaction, error: string): boolean {
  clear(transaction);
  transaction.transition("broke", "host", { error });
  return true;
}
