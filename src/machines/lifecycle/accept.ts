import { fail } from "#core/errors.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Operation, OperationPayload } from "../types.ts";
import { type Action, type MachineState, next } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";

/** Where the wish already is fulfilled: nothing is done, and that is a success. */
const FULFILLED: Partial<Record<Action, readonly MachineState[]>> = {
  start: ["started"],
  stop: ["stopped"],
  suspend: ["suspended"],
  destroy: ["destroyed"],
};

/**
 * Takes a wish for a machine that may be busy. It is judged by where the machine will be when all that waits
 * has been done, and waits behind it; so nobody is refused because of a state that is about to pass. False
 * when there is nothing to do.
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
  // What is first in line shows in the state at once.
  if (idle) transaction.begin(operation);
  if (payload.source === "user") transaction.set({ restarts: 0 });
}

/** A destroy overtakes everything: what waits, and what is being done. */
function destroy(transaction: MachineTransaction, payload: OperationPayload): boolean {
  for (const operation of transaction.operations) transaction.finish(operation);
  transaction.begin(transaction.queue("destroy", payload));
  return true;
}

/** A destroy with SIGKILL cuts short one that still waits for the machine to stop by itself. */
function hurry(transaction: MachineTransaction, { signal, timeout_ms }: OperationPayload): boolean {
  const [operation] = transaction.operations;
  if (!operation || signal !== "SIGKILL" || operation.payload.signal === signal) return false;
  transaction.put({ ...operation, payload: { ...operation.payload, signal, timeout_ms: timeout_ms ?? 0 } });
  return true;
}

/** The restart that the policy has put off, if that is what the machine is doing. */
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

/** Whether something of it runs, or will when what waits has been done. */
export const runs = (transaction: MachineTransaction): boolean =>
  !["created", "stopped", "suspended", "failed", "destroyed"].includes(transaction.projected);
