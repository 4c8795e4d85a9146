/** How an operation begins, ends or fails, as it is written down. */
import type { Draft } from "./draft.ts";
import { clear } from "./phases.ts";
import { next } from "./states.ts";
import type { Operation } from "./types.ts";

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

export function broke(draft: Draft, error: string): boolean {
  clear(draft);
  draft.hop("broke", "host", { error });
  return true;
}
