/**
 * The requests of clients and their responses, by one monotonic clock. An operation is `ok` (it happened), `fail`
 * (it did not happen, and never will) or `unknown` (no answer, or one that leaves it open).
 */

export const ANY = "any";

export type Outcome = "ok" | "fail" | "unknown";

export interface Operation {
  kind: "write" | "read" | "acquire" | "release" | "create" | "attempt" | "list" | "stop" | "start";
  /** The process that was asked; of a create, whose attempts go to several, `ANY`. */
  process: string;
  /** What it is about: a register, a machine, or the list of machines. */
  key: string;
  /** What was written or found; the name of a lease. Of a read: undefined when nothing was there. */
  value?: string | undefined;
  /** Of a list: what was in it. */
  values?: readonly string[];
  /** Of a lease: how long it lasts at least. */
  ttl_ms?: number;
  invoked: number;
  /** When the answer came, or the client gave up. */
  ended: number;
  outcome: Outcome;
}

export type Asked = Pick<Operation, "kind" | "process" | "key"> & Partial<Pick<Operation, "value" | "ttl_ms">>;
export type Told = Pick<Operation, "outcome"> & Partial<Pick<Operation, "value" | "values">>;

/** A stretch in which a process could not answer, by what was done to it. */
export interface Down {
  process: string;
  from: number;
  to: number;
}

export class History {
  readonly operations: Operation[] = [];
  /** Answers that should never come, such as an internal error. */
  readonly unexpected: string[] = [];
  readonly #down: Down[] = [];
  readonly #unanswered = new Set<Asked & Pick<Operation, "invoked">>();

  get down(): readonly Down[] {
    return this.#down;
  }

  /** Carries out one operation and writes down both its ends. */
  async record(asked: Asked, call: () => Promise<Told>): Promise<Told> {
    const begun = { ...asked, invoked: performance.now() };
    this.#unanswered.add(begun);
    const told = await call().catch((): Told => ({ outcome: "unknown" }));
    this.#unanswered.delete(begun);
    this.operations.push({ ...begun, ...told, ended: performance.now() });
    return told;
  }

  /** All operations until now, with those that have no answer yet: others may have seen what they do. */
  soFar(): Operation[] {
    const ended = performance.now();
    const open = Array.from(this.#unanswered, (one): Operation => ({ ...one, ended, outcome: "unknown" }));
    return [...this.operations, ...open];
  }

  /** The process answers nobody from now on; what it answers with ends that. */
  takeDown(process: string): () => void {
    const stretch: Down = { process, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#down.push(stretch);
    return () => {
      stretch.to = performance.now();
    };
  }

  count(outcome: Outcome, ...kinds: readonly Operation["kind"][]): number {
    return this.operations.filter((one) => one.outcome === outcome && kinds.includes(one.kind)).length;
  }
}
