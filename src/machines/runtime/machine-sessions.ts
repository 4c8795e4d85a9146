/** What terminals and tunnels share: session limits, bytes with backpressure, and idle timeouts. */
import { once } from "node:events";
import { Duplex, type Writable } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import { MACHINE_LIMITS } from "../limits.ts";

type LimitName = keyof typeof MACHINE_LIMITS;

/** Counts the open sessions of one kind, per machine and in this process. */
export class SessionCounts {
  readonly #kind: string;
  readonly #limits: { per_machine: LimitName; all: LimitName };
  readonly #open = new Map<string, number>();
  #all = 0;

  constructor(kind: string, limits: { per_machine: LimitName; all: LimitName }) {
    this.#kind = kind;
    this.#limits = limits;
  }

  /** Fails when there are enough already. */
  check(id: string): void {
    const { per_machine, all } = this.#limits;
    if ((this.#open.get(id) ?? 0) >= MACHINE_LIMITS[per_machine]) {
      fail(
        "limit_reached",
        `machine ${id} has ${MACHINE_LIMITS[per_machine]} open ${this.#kind} (limit ${per_machine}); close one`,
      );
    }
    if (this.#all >= MACHINE_LIMITS[all]) {
      const problem = `there are ${MACHINE_LIMITS[all]} open ${this.#kind} (limit ${all})`;
      fail("overloaded", problem, { retry_after_s: 10 });
    }
  }

  /** Counts one session of a machine while `work` lasts. */
  async during(id: string, work: () => Promise<void>): Promise<void> {
    this.check(id);
    this.#count(id, 1);
    try {
      await work();
    } finally {
      this.#count(id, -1);
    }
  }

  #count(id: string, by: number): void {
    this.#all += by;
    const now = (this.#open.get(id) ?? 0) + by;
    if (now > 0) this.#open.set(id, now);
    else this.#open.delete(id);
  }
}

/** Writes bytes; resolves when the reader has room for more, or the stream is closed. */
export async function writeTo(stream: Writable, bytes: Buffer): Promise<void> {
  if (!stream.writable || stream.write(bytes)) return;
  const settled = new AbortController();
  const { signal } = settled;
  await Promise.race([once(stream, "drain", { signal }), once(stream, "close", { signal })]).finally(() =>
    settled.abort(),
  );
}

/** When something last happened in a session, by the monotonic clock. */
export interface LastActivity {
  last: number;
}

/** Ends a session in which nothing happens for as long as a limit says. Resolves when `signal` is aborted. */
export async function endWhenIdle(
  session: WebSocketSession,
  activity: LastActivity,
  { clock, limit, signal }: { clock: Clock; limit: LimitName; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const left = activity.last + MACHINE_LIMITS[limit] - clock.monotonic();
    if (left <= 0) return session.end(CLOSE_CODES.policy, `nothing happened for too long (${limit})`);
    await clock.sleep(left, signal).catch(() => {});
    if (signal.aborted) return;
  }
}

interface SessionStreamParts {
  /** A text message. The result "end" ends what can be read, as a FIN does. */
  onText(text: string): "end" | undefined;
  /** The other side has disconnected. A returned error destroys the stream; otherwise it ends. */
  onGone(): Error | undefined;
  /** Everything was written. */
  final?(): Promise<void>;
}

/**
 * The binary messages of a session as a stream. As much as is read here is taken there, so a slow reader slows the
 * writer.
 */
export function sessionStream(session: WebSocketSession, parts: SessionStreamParts): Duplex {
  let wanted = Promise.withResolvers<void>();
  let ended = false;
  const stream = new Duplex({
    read: () => wanted.resolve(),
    write: (bytes: Buffer, _, done) => void session.send(bytes).then(() => done()),
    final: (done) => void (parts.final?.() ?? Promise.resolve()).then(() => done()),
    destroy: (error, done) => {
      wanted.resolve();
      session.end(CLOSE_CODES.done, "hung up");
      done(error);
    },
  });
  const end = (): void => {
    if (!ended && !stream.destroyed) stream.push(null);
    ended = true;
  };
  const take = async (bytes: Buffer): Promise<void> => {
    await wanted.promise;
    if (stream.destroyed || ended) return;
    wanted = Promise.withResolvers();
    stream.push(bytes);
  };
  const receive = async (): Promise<void> => {
    for await (const message of session.messages()) {
      if (typeof message !== "string") await take(message);
      else if (parts.onText(message) === "end") end();
    }
    const problem = parts.onGone();
    if (problem && !ended) stream.destroy(problem);
    else end();
  };
  void receive();
  return stream;
}
