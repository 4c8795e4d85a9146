import { fail } from "#core/errors.ts";
import type { Input } from "#http/admission.ts";
import type { CallContext, PlatformRows, Target } from "../calls.ts";
import { FLY_LIMITS } from "../limits.ts";

/** What resolvers share while one query runs. */
export class Query {
  readonly #rows: PlatformRows;
  readonly #context: CallContext;
  readonly #read = new Map<string, Promise<unknown>>();
  #calls = 0;
  /** Of the platform's apps: `<app>.<domain>`. */
  readonly domain: string;

  constructor(rows: PlatformRows, context: CallContext, domain: string) {
    this.#rows = rows;
    this.#context = context;
    this.domain = domain;
  }

  get caller(): CallContext["caller"] {
    return this.#context.caller;
  }

  async call<T>(target: Target, given: Partial<Input> = {}): Promise<T> {
    return (await this.invoke<T>(target, given)).value;
  }

  /** Reads are cached for the query. */
  async read<T>(target: Target, given: Partial<Input> = {}): Promise<T> {
    const key = JSON.stringify([target, given]);
    const before = this.#read.get(key) ?? this.call<T>(target, given);
    this.#read.set(key, before);
    return (await before) as T;
  }

  async invoke<T>(target: Target, given: Partial<Input> = {}): Promise<{ value: T; next: string | undefined }> {
    if (++this.#calls > FLY_LIMITS.graphql_calls)
      fail(
        "limit_reached",
        `the query needs more than ${FLY_LIMITS.graphql_calls} calls (limit graphql_calls); request less at a time`,
      );
    const { value, next } = await this.#rows.invoke(target, given, this.#context);
    return { value: value as T, next };
  }
}
