import { createHash, createHmac } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { type Ids, repeatableIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import type { Sealer } from "#core/sealer.ts";

/** Stores responses to requests with an Idempotency-Key. Implemented in stores/, tested by `idempotency.suite.ts`. */
export interface IdempotencyStore {
  /**
   * Claims the key for `entry.runner`, or returns the existing entry. An entry of another runner that began before
   * `stale_before_ms` without a response is taken over, because its runner died.
   */
  begin(entry: IdempotencyEntry, stale_before_ms: number): Promise<IdempotencyEntry>;
  finish(key: string, answer: Uint8Array): Promise<void>;
  /** Deletes the key, so that the next attempt runs again. */
  forget(key: string): Promise<void>;
  /** Deletes older entries. */
  expire(before_ms: number): Promise<number>;
}

export interface IdempotencyEntry {
  key: string;
  fingerprint: string;
  /** Seed of the request's ids, the same at every run. */
  seed: Uint8Array;
  /** The process that executes it. */
  runner: string;
  started_at: number;
  /** Sealed response; null while it is executed. */
  answer: Uint8Array | null;
}

export interface Recorded {
  status: number;
  body: string | undefined;
}

/** Identifies a request beyond its key: caller, route and exact body. */
interface Repeatable {
  caller: string;
  method: string;
  path: string;
  key: string;
  body: string;
  /** False for a response with a credential: it is not stored, and a repeat runs again with the same ids. */
  recorded: boolean;
}

/** A wall clock that is this much ahead of the other was set, not slewed. */
const CLOCK_STEP_MS = 1000;

/** Marks a response that is not stored. */
const UNRECORDED = "unrecorded";

/**
 * Executes a request once per key. A repeat gets the first response; a concurrent one waits for it; a repeat after a
 * crash runs again with the same ids, and so finds what the first run created.
 */
export class Idempotency {
  readonly #parts: { store: IdempotencyStore; sealer: Sealer; clock: Clock; runner: string };
  readonly #running = new Map<string, Promise<Recorded>>();
  /** Both clocks at the last deletion. */
  #before: { wall: number; monotonic: number };
  /** By how much the wall clock was recently set forward, and when. */
  #set_forward = { by_ms: 0, at: Number.NEGATIVE_INFINITY };

  constructor(parts: { store: IdempotencyStore; sealer: Sealer; clock: Clock; runner: string }) {
    this.#parts = parts;
    this.#before = { wall: parts.clock.now(), monotonic: parts.clock.monotonic() };
  }

  async once(request: Repeatable, run: (ids: Ids) => Promise<Recorded>): Promise<Recorded & { repeated: boolean }> {
    if (!/^[\x21-\x7e]+$/.test(request.key) || request.key.length > LIMITS.idempotency_key_chars) {
      fail("invalid_request", `an Idempotency-Key is 1 to ${LIMITS.idempotency_key_chars} visible ASCII characters`);
    }
    // The key is scoped to the caller, so that a guessed key does not return another caller's response.
    const key = hash(request.caller, request.method, request.path, request.key);
    const fingerprint = hash(request.body);
    const before = this.#running.get(key);
    if (before) {
      await before.catch(() => {});
      return await this.once(request, run);
    }
    const running = this.#begin(key, fingerprint, request.recorded, run);
    this.#running.set(key, running);
    try {
      return await running;
    } finally {
      this.#running.delete(key);
    }
  }

  /** A wall clock that is set forward must not expire keys early: their requests would run again. */
  async expire(): Promise<number> {
    const { clock, store } = this.#parts;
    const now = { wall: clock.now(), monotonic: clock.monotonic() };
    const by_ms = now.wall - this.#before.wall - (now.monotonic - this.#before.monotonic);
    this.#before = now;
    if (by_ms > CLOCK_STEP_MS) this.#set_forward = { by_ms: this.#set_forward.by_ms + by_ms, at: now.monotonic };
    else if (now.monotonic - this.#set_forward.at > LIMITS.idempotency_kept_ms) this.#set_forward.by_ms = 0;
    return await store.expire(now.wall - this.#set_forward.by_ms - LIMITS.idempotency_kept_ms);
  }

  async #begin(
    key: string,
    fingerprint: string,
    recorded: boolean,
    run: (ids: Ids) => Promise<Recorded>,
  ): Promise<Recorded & { repeated: boolean }> {
    const { store, sealer, clock, runner } = this.#parts;
    const now = clock.now();
    const seed = createHmac("sha256", sealer.derive("idempotency")).update(`${key}:${now}`).digest();
    const mine: IdempotencyEntry = { key, fingerprint, seed, runner, started_at: now, answer: null };
    const entry = await store.begin(mine, now - LIMITS.idempotency_running_ms);
    if (entry.fingerprint !== fingerprint) {
      fail(
        "idempotency_mismatch",
        "this Idempotency-Key was used before with another body; use a new key for a new request",
      );
    }
    const kept = entry.answer && sealer.open(`idempotency:${key}`, entry.answer).toString();
    if (kept && kept !== UNRECORDED) return { ...(JSON.parse(kept) as Recorded), repeated: true };
    if (!kept && entry.runner !== runner) {
      fail("idempotency_in_progress", "the first request with this Idempotency-Key is still running", {
        retry_after_s: 1,
      });
    }
    try {
      const answer = await run(repeatableIds(entry.seed, entry.started_at));
      await store.finish(key, sealer.seal(`idempotency:${key}`, recorded ? JSON.stringify(answer) : UNRECORDED));
      return { ...answer, repeated: kept !== null };
    } catch (thrown) {
      // A refused request changed nothing, so the key is free again. Other failures keep the key, and so does a refusal
      // of a later run: the first run may have done its work, which is found by its ids.
      if (isRefusal(thrown) && entry.started_at === now) await store.forget(key);
      throw thrown;
    }
  }
}

const isRefusal = (thrown: unknown): boolean => thrown instanceof ApiError && thrown.http < 500;

const hash = (...parts: string[]): string => createHash("sha256").update(JSON.stringify(parts)).digest("hex");
