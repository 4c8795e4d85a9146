import { fail } from "#core/errors.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Operation, OperationPayload } from "../types.ts";
import { type Action, type MachineState, next } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";

/** States in which the action has already been carried out: nothing is done, and that is a success. */
const FULFILLED: Partial<Record<Action, readonly MachineState[]>> = {
  start: ["started"],
  stop: ["stopped"],
  suspend: ["suspended"],
  destroy: ["destroyed"],
};

/**
 * Queues an action on a machine that may be busy. It is checked against the state after all queued operations, so a
 * request is not refused because of a transitional state. Returns false when there is nothing to do.
 */
export function accept(transaction: MachineTransaction, kind: Action, payload: OperationPayload): boolean {
  const { machine } = transaction;
  if (machine.state === "destroyed") fail("not_found", `machine not found: ${machine.id} is destroyed`);
  if (machine.state === "destroying")
    return kind === "destroy" ? hurry(transaction, payload) : wrongState(kind, "destroying");
  if (kind === "destroy") return destroy(transaction, payload);
  const waiting = backingOff(transaction);
  if (waiting && (kind === "start" || kind === "restart")) {
    transaction.put({ ...waiting, not_before: null });
    transaction.set({ restarts: 0 });
    return true;
  }
  if (waiting && (kind === "stop" || kind === "update")) transaction.finish(waiting);
  else if (FULFILLED[kind]?.includes(transaction.projected)) return false;
  if (kind === "suspend" && transaction.projected !== "started") wrongState(kind, transaction.projected);
  enqueue(transaction, kind, payload);
  return true;
}

function enqueue(transaction: MachineTransaction, kind: Action, payload: OperationPayload): void {
  const { operations_waiting } = MACHINE_LIMITS;
  if (transaction.operations.length >= operations_waiting) {
    fail("overloaded", `more than ${operations_waiting} operations wait on machine ${transaction.machine.id}`, {
      retry_after_s: 1,
    });
  }
  const idle = transaction.operations.length === 0;
  const operation = transaction.queue(kind, payload);
  // The first operation in the queue sets the state at once.
  if (idle) transaction.begin(operation);
  if (payload.source === "user") transaction.set({ restarts: 0 });
}

/** A destroy cancels queued and running operations. */
function destroy(transaction: MachineTransaction, payload: OperationPayload): boolean {
  for (const operation of transaction.operations) transaction.finish(operation);
  transaction.begin(transaction.queue("destroy", payload));
  return true;
}

/** A destroy with SIGKILL shortens one that still waits for a graceful stop. */
function hurry(transaction: MachineTransaction, { signal, timeout_ms }: OperationPayload): boolean {
  const [operation] = transaction.operations;
  if (!operation || signal !== "SIGKILL" || operation.payload.signal === signal) return false;
  transaction.put({ ...operation, payload: { ...operation.payload, signal, timeout_ms: timeout_ms ?? 0 } });
  return true;
}

/** Returns the delayed restart of the restart policy, if the machine is waiting for one. */
function backingOff(transaction: MachineTransaction): Operation | undefined {
  const [first] = transaction.operations;
  return first && first.not_before !== null && transaction.machine.state === "restarting" ? first : undefined;
}

function wrongState(kind: Action, state: MachineState): never {
  fail("wrong_state", `unable to ${kind} machine from current state: '${state}'`, {
    facts: { current_state: state },
    hint: next(state, "start") ? "start it first" : "wait for it",
  });
}

/** Whether the machine is running, or will be after the queued operations. */
export const runs = (transaction: MachineTransaction): boolean =>
  !["created", "stopped", "suspended", "failed", "destroyed"].includes(transaction.projected);
