/** Tunnels to private ports of machines: bytes of one TCP connection over a WebSocket; either side may end first. */
import type { Duplex } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { Ref, RuntimeDriver } from "./driver.ts";
import { endWhenIdle, SessionCounts, sessionStream, writeTo } from "./machine-sessions.ts";

/** WebSocket has no half-close: this text message says that no more bytes come from its sender. */
const END = JSON.stringify({ end: true });

const isEnd = (text: string): boolean => (JSON.parse(text) as { end?: unknown } | null)?.end === true;

export class Tunnels {
  readonly #driver: RuntimeDriver;
  readonly #clock: Clock;
  readonly #counts = new SessionCounts("tunnels", { per_machine: "tunnels_per_machine", all: "tunnels" });

  constructor({ driver, clock }: { driver: RuntimeDriver; clock: Clock }) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Fails as opening one would: too many are open, or nothing accepts connections on the port. */
  async check(ref: Ref, port: number, signal: AbortSignal): Promise<void> {
    this.#counts.check(ref.id);
    (await this.#driver.connect(ref, port, signal)).destroy();
  }

  /** Opens one and carries bytes until both directions have ended, or one side has left. */
  async run(
    ref: Ref,
    port: number,
    { signal, accept }: { signal: AbortSignal; accept: () => WebSocketSession },
  ): Promise<void> {
    await this.#counts.during(ref.id, async () => {
      await relayTunnel(accept, await this.#driver.connect(ref, port, signal), this.#clock);
    });
  }
}

/** Carries bytes both ways until both directions have ended, or one side has left. The stream is destroyed then. */
export async function relayTunnel(accept: () => WebSocketSession, stream: Duplex, clock: Clock): Promise<void> {
  const over = new AbortController();
  const activity = { last: clock.monotonic() };
  const touch = (): void => {
    activity.last = clock.monotonic();
  };
  const hangUp = (): void => void stream.destroy();
  // A reset comes while nothing is read or written, too; the directions notice by themselves.
  stream.on("error", () => {});
  try {
    const session = accept();
    if (session.signal.aborted) hangUp();
    session.signal.addEventListener("abort", hangUp, { once: true });
    void endWhenIdle(session, activity, { clock, limit: "tunnel_idle_ms", signal: over.signal });
    const ends = await Promise.all([outward(session, stream, touch), inward(session, stream, touch)]);
    const [code, reason] = ends.find((end) => end !== undefined) ?? [CLOSE_CODES.done, "both sides have ended"];
    session.end(code, reason);
  } finally {
    over.abort();
    stream.destroy();
  }
}

type End = readonly [code: number, reason: string] | undefined;

/** What the machine sends. */
async function outward(session: WebSocketSession, stream: Duplex, touch: () => void): Promise<End> {
  try {
    for await (const piece of stream) {
      touch();
      await session.send(piece as Buffer);
    }
    await session.send(END);
    return undefined;
  } catch {
    // Ends at once, without waiting for the client: what it sends has no destination any more.
    const end = [CLOSE_CODES.broken, "the machine reset the connection"] as const;
    session.end(...end);
    return end;
  }
}

/** What the client sends. A client that disconnects without an end message ends the connection too. */
async function inward(session: WebSocketSession, stream: Duplex, touch: () => void): Promise<End> {
  try {
    for await (const message of session.messages()) {
      touch();
      if (typeof message !== "string") await writeTo(stream, message);
      else if (isEnd(message)) {
        stream.end();
        return undefined;
      }
    }
    stream.destroy();
    return undefined;
  } catch {
    stream.destroy();
    return [CLOSE_CODES.policy, "the message cannot be read"];
  }
}

/** A connection at the other end of a session, where `relayTunnel` serves it. */
export function remoteConnection(session: WebSocketSession): Duplex {
  return sessionStream(session, {
    onText: (text) => (isEnd(text) ? "end" : undefined),
    onGone: () => new Error("the connection to the machine's host was lost"),
    final: () => session.send(END),
  });
}
