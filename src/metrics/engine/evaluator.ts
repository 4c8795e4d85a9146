import type { SampleSource } from "../source.ts";

/** A query at one time, or on a grid when it has a step. All that matters beyond the text is in `options`. */
export interface QueryRequest {
  query: string;
  start_ms: number;
  end_ms: number;
  /** Absent for a query at one time, which is then `end_ms`. */
  step_ms?: number;
  /** The language's own: dialect, lookback, limits. Plain data, it crosses threads. */
  options?: Readonly<Record<string, string | number | boolean>>;
}

/**
 * What turns a query into an answer, in the worker. The answer is the bytes of the `data` field of the HTTP
 * answer: they are made once, where the samples are, and only passed on from there.
 */
export interface Evaluator {
  /**
   * Synchronous and possibly long, so it asks `cancelled` now and then and throws when it says yes. Errors it
   * throws reach the caller with their name, message and `details`.
   */
  evaluate(source: SampleSource, request: QueryRequest, cancelled: () => boolean): Uint8Array;
}

/** The module the worker loads by default. */
export const evaluator: Evaluator = {
  evaluate() {
    throw new Error("no query language is wired in");
  },
};
