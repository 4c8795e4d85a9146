import { assert } from "#core/assert.ts";
import type { Input } from "#http/admission.ts";
import { type Invoked, type Invoker, invoke } from "#http/invoke.ts";
import type { AnyCall, Row } from "#http/route.ts";

/** A row by its method and path, as it stands in its module: `GET /v1/apps/:app_name`. */
export type Target = `${Row["method"]} /${string}`;

const NONCE = { ours: "svc-machine-lease-nonce", theirs: "fly-machine-lease-nonce" } as const;

/** The context of a request that is passed to the rows it calls. */
export type CallContext = Pick<AnyCall, "caller" | "ids" | "request_id" | "signal" | "header">;

/** The platform's rows, called in process on behalf of a caller of the Fly listener. */
export class PlatformRows {
  readonly #rows: ReadonlyMap<string, Row>;
  readonly #guard: Invoker["guard"];

  constructor(rows: readonly Row[], guard: Invoker["guard"]) {
    this.#rows = new Map(rows.map((row) => [`${row.method} ${row.path}`, row]));
    this.#guard = guard;
  }

  find(target: Target): Row {
    const row = this.#rows.get(target);
    assert(row, `${target} is a row of the platform`);
    return row;
  }

  async invoke(target: Target, given: Partial<Input>, call: CallContext): Promise<Invoked> {
    const { caller, ids, request_id, signal } = call;
    const header = (name: string): string | undefined =>
      (name === NONCE.ours ? call.header(NONCE.theirs) : undefined) ?? call.header(name);
    return await invoke(this.find(target), given, {
      guard: this.#guard,
      caller,
      ids,
      request_id,
      signal,
      header,
    });
  }

  async value<T>(target: Target, given: Partial<Input>, call: CallContext): Promise<T> {
    return (await this.invoke(target, given, call)).value as T;
  }
}
