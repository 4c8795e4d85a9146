/**
 * Databases that are not served as they should be, each with a state, a reason and the time of the next attempt. One of
 * them never keeps the node from the others.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { DatabaseBusy } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";

export type ProblemState =
  /** It is being read to find its position. */
  | "opening"
  /** An application holds its write lock. */
  | "busy"
  /** The disk is full. */
  | "full"
  /** Not a database, or a corrupt one. */
  | "damaged"
  /** Its file is missing, without a logged deletion. */
  | "missing"
  /** Another file has its name. */
  | "replaced"
  /** The primary does not have it, without a logged deletion. */
  | "kept"
  /** Anything else; the reason says what. */
  | "failed";

export interface Problem {
  state: ProblemState;
  reason: string;
  since_ms: number;
}

interface Entry extends Problem {
  tries: number;
  next_ms: number;
}

/** SQLite's result codes, without their extensions. */
const BY_SQLITE_CODE: Readonly<Record<number, ProblemState>> = {
  5: "busy",
  6: "busy",
  11: "damaged",
  13: "full",
  15: "busy",
  26: "damaged",
};

const BY_SYSTEM_CODE: Readonly<Record<string, ProblemState>> = { ENOSPC: "full", EDQUOT: "full" };

/** An error that states the resulting database state. */
export class Quarantined extends Error {
  override readonly name = "Quarantined";
  readonly state: ProblemState;

  constructor(state: ProblemState, message: string) {
    super(message);
    this.state = state;
  }
}

export function stateOf(error: unknown): ProblemState {
  if (error instanceof Quarantined) return error.state;
  if (error instanceof DatabaseBusy) return "busy";
  if (!(error instanceof Error)) return "failed";
  if ("errcode" in error) return BY_SQLITE_CODE[Number(error.errcode) % 256] ?? "failed";
  return ("code" in error && BY_SYSTEM_CODE[String(error.code)]) || "failed";
}

export class Problems {
  readonly #clock: Clock;
  readonly #log: (message: string) => void;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, log: (message: string) => void) {
    this.#clock = clock;
    this.#log = log;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(name: string): Problem | undefined {
    return this.#entries.get(name);
  }

  [Symbol.iterator](): IterableIterator<[string, Problem]> {
    return this.#entries.entries();
  }

  /** Failed attempts since it last worked. */
  tries(name: string): number {
    return this.#entries.get(name)?.tries ?? 0;
  }

  /** Whether it is time to retry. */
  due(name: string): boolean {
    return this.#clock.monotonic() >= (this.#entries.get(name)?.next_ms ?? 0);
  }

  /** Records a failed attempt; logged when it is new. */
  failed(name: string, error: unknown): void {
    this.set(name, stateOf(error), messageOf(error));
  }

  set(name: string, state: ProblemState, reason: string): void {
    const before = this.#entries.get(name);
    const tries = (before?.tries ?? 0) + (state === "opening" ? 0 : 1);
    const { retry_ms, retry_most_ms } = REPLICATION_LIMITS;
    const wait_ms = Math.min(retry_ms * 2 ** Math.min(tries, 16), retry_most_ms);
    if (before?.state !== state || before.reason !== reason) this.#log(`${name}: ${state}: ${reason}`);
    const since_ms = before?.state === state ? before.since_ms : this.#clock.now();
    this.#entries.set(name, { state, reason, since_ms, tries, next_ms: this.#clock.monotonic() + wait_ms });
  }

  clear(name: string): void {
    this.#entries.delete(name);
  }

  /** Removes entries in these states whose name is not listed. */
  keepOnly(states: ReadonlySet<ProblemState>, names: ReadonlySet<string>): void {
    for (const [name, { state }] of this.#entries) {
      if (states.has(state) && !names.has(name)) this.#entries.delete(name);
    }
  }
}
