import type { Ids } from "#core/ids.ts";
import type { Caller, Guard } from "./access.ts";
import { admittedTo, type Input } from "./admission.ts";
import { checkedInput } from "./input.ts";
import { readPage } from "./list-page.ts";
import type { Row } from "./route.ts";
import { NO_UPLOAD } from "./upload.ts";

/** The request that an invocation belongs to. */
export interface Invoker {
  guard: Guard;
  caller: Caller;
  ids: Ids;
  request_id: string;
  signal: AbortSignal;
  header(name: string): string | undefined;
}

/** The result of an in-process call; `next` is the cursor of the next page of a list. */
export interface Invoked {
  value: unknown;
  next: string | undefined;
}

/**
 * Calls a row in process with the same validation, access rule and handler as a request over HTTP. So compatible APIs
 * (such as Fly's GraphQL) need no access rules of their own.
 */
export async function invoke(row: Row, given: Partial<Input>, { guard, ...from }: Invoker): Promise<Invoked> {
  const { unknown: _, ...input } = checkedInput(row, {
    params: given.params ?? {},
    query: given.query ?? {},
    body: given.body,
  });
  const admitted = await admittedTo(row, { guard }, from.caller, input);
  const page = readPage(row, input.query);
  const value = await row.handle({ ...input, ...admitted, ...from, page, upload: NO_UPLOAD });
  return { value, next: page.next };
}
