import { fail } from "#core/errors.ts";
import type { Draft } from "./draft.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import { type Asked, type MachineState, next } from "./states.ts";
import type { Operation, OperationPayload } from "./types.ts";

/** Where the wish already is fulfilled: nothing is done, and that is a success. */
const FULFILLED: Partial<Record<Asked, readonly MachineState[]>> = {
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
export function accept(draft: Draft, kind: Asked, payload: OperationPayload): boolean {
  const { machine } = draft;
  if (machine.state === "destroyed") fail("not_found", `machine not found: ${machine.id} is destroyed`);
  if (machine.state === "destroying")
    return kind === "destroy" ? hurry(draft, payload) : wrongState(kind, "destroying");
  if (kind === "destroy") return destroy(draft, payload);
  const waiting = backingOff(draft);
  if (waiting && (kind === "start" || kind === "restart")) {
    draft.put({ ...waiting, not_before: null });
    draft.set({ restarts: 0 });
    return true;
  }
  if (waiting && (kind === "stop" || kind === "update")) draft.finish(waiting);
  else if (FULFILLED[kind]?.includes(draft.projected)) return false;
  if (kind === "suspend" && draft.projected !== "started") wrongState(kind, draft.projected);
  enqueue(draft, kind, payload);
  return true;
}

function enqueue(draft: Draft, kind: Asked, payload: OperationPayload): void {
  const { operations_waiting } = MACHINE_LIMITS;
  if (draft.operations.length >= operations_waiting) {
    fail("overloaded", `more than ${operations_waiting} operations wait on machine ${draft.machine.id}`, {
      retry_after_s: 1,
    });
  }
  const idle = draft.operations.length === 0;
  const operation = draft.queue(kind, payload);
  // What is first in line shows in the state at once.
  if (idle) draft.begin(operation);
  if (payload.source === "user") draft.set({ restarts: 0 });
}

/** A destroy overtakes everything: what waits, and what is being done. */
function destroy(draft: Draft, payload: OperationPayload): boolean {
  for (const operation of draft.operations) draft.finish(operation);
  draft.begin(draft.queue("destroy", payload));
  return true;
}

/** A destroy with SIGKILL cuts short one that still waits for the machine to stop by itself. */
function hurry(draft: Draft, { signal, timeout_ms }: OperationPayload): boolean {
  const [operation] = draft.operations;
  if (!operation || signal !== "SIGKILL" || operation.payload.signal === signal) return false;
  draft.put({ ...operation, payload: { ...operation.payload, signal, timeout_ms: timeout_ms ?? 0 } });
  return true;
}

/** The restart that the policy has put off, if that is what the machine is doing. */
function backingOff(draft: Draft): Operation | undefined {
  const [first] = draft.operations;
  return first && first.not_before !== null && draft.machine.state === "restarting" ? first : undefined;
}

function wrongState(kind: Asked, state: MachineState): never {
  fail("wrong_state", `unable to ${kind} machine from current state: '${state}'`, {
    facts: { current_state: state },
    hint: next(state, "start") ? "start it first" : "wait for it",
  });
}

/** Whether something of it runs, or will when what waits has been done. */
export const runs = (draft: Draft): boolean =>
  !["created", "stopped", "suspended", "failed", "destroyed"].includes(draft.projected);
