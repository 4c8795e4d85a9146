/** A command over WebSocket, in the messages of the Sprites API. */
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { SessionEnded } from "#http/sessions.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import { parseSignal } from "#machines/api/routing.ts";
import type { TerminalEnd } from "#machines/runtime/driver.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import { isSide } from "./input.ts";
import { STREAM } from "./program.ts";
import type { ExecSession, SessionClient } from "./session.ts";

/** A terminal has no message for its exit code in every client: one that is not 0 is in the close code, too. */
const EXIT_CLOSE = 4000;

export const framed = (stream: number, bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(stream), bytes]);
export const exitByte = ({ exit_code }: TerminalEnd): number => exit_code & 0xff;

export const sessionInfo = (session: ExecSession, is_owner: boolean): string => {
  const { command, tty, rows, cols } = session.input;
  const created = Math.floor(session.created / 1000);
  const about = { session_id: session.id, command: command.join(" "), created, tty, cols, rows, is_owner };
  return JSON.stringify({ type: "session_info", ...about });
};

/** What the other side of a session is sent, in order. */
export class OutputClient implements SessionClient {
  readonly #socket: WebSocketSession;
  readonly #tty: boolean;
  readonly #onEnd: (how: TerminalEnd) => Promise<void>;
  /** Calls that have not resolved. */
  readonly #waiting = new Set<() => void>();
  #queue: Promise<void> = Promise.resolve();

  constructor(socket: WebSocketSession, tty: boolean, onEnd: (how: TerminalEnd) => Promise<void>) {
    this.#socket = socket;
    this.#tty = tty;
    this.#onEnd = onEnd;
    socket.signal.addEventListener("abort", () => this.#leave(), { once: true });
  }

  output(stream: number, piece: Buffer): Promise<void> {
    return this.#next(() => this.#socket.send(this.#tty ? piece : framed(stream, piece)));
  }

  ended(how: TerminalEnd): Promise<void> {
    return this.#next(async () => {
      if (this.#tty) await this.#socket.send(JSON.stringify({ type: "exit", exit_code: how.exit_code }));
      else await this.#socket.send(framed(STREAM.exit, Buffer.of(exitByte(how))));
      await this.#onEnd(how);
    });
  }

  drop(): void {
    this.#socket.end(CLOSE_CODES.policy, "this client is too slow (limit session_stall_ms)");
  }

  #next(work: () => Promise<void>): Promise<void> {
    if (this.#socket.signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const taken = (): void => {
      this.#waiting.delete(taken);
      resolve();
    };
    this.#waiting.add(taken);
    void this.#queue.then(work).then(taken, taken);
    this.#queue = promise;
    return promise;
  }

  /** A client that has left holds up nobody. */
  #leave(): void {
    for (const taken of this.#waiting) taken();
  }
}

/** Serves one client of a session until the command ends or the client leaves. */
export async function serveSession(
  socket: WebSocketSession,
  session: ExecSession,
  { is_owner, signal, clock }: { is_owner: boolean; signal: AbortSignal; clock: Clock },
): Promise<void> {
  await socket.send(sessionInfo(session, is_owner));
  const { tty } = session.input;
  const client = new OutputClient(socket, tty, async (how) => {
    const code = exitByte(how);
    socket.end(tty && code !== 0 ? EXIT_CLOSE + code : CLOSE_CODES.done, "the command has ended");
  });
  session.attach(client);
  void keepAlive(socket, clock);
  try {
    await forwardInput(socket, session);
  } finally {
    session.detach(client);
    if (isRevoked(signal)) session.close();
  }
}

async function keepAlive(socket: WebSocketSession, clock: Clock): Promise<void> {
  while (!socket.signal.aborted) {
    await clock.sleep(SPRITE_LIMITS.command_keepalive_ms, socket.signal).catch(() => {});
    if (!socket.signal.aborted) await socket.send(Buffer.alloc(0));
  }
}

/** The token of who is connected was revoked, or has expired. */
export const isRevoked = ({ reason }: AbortSignal): boolean => reason instanceof SessionEnded;

async function forwardInput(socket: WebSocketSession, session: ExecSession): Promise<void> {
  try {
    for await (const message of socket.messages()) {
      if (typeof message === "string") applyControl(session, message);
      else await applyInput(session, message);
    }
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : "the message cannot be read";
    socket.end(CLOSE_CODES.policy, reason.slice(0, REASON_CHARS));
  }
}

/** Fits into a WebSocket close reason (123 bytes) in any script. */
const REASON_CHARS = 40;

/** Input: raw for a terminal, otherwise with the number of its stream. */
export async function applyInput(session: ExecSession, message: Buffer): Promise<void> {
  if (session.input.tty) await session.write(message);
  else if (message[0] === STREAM.stdin) await session.write(message.subarray(1));
  else if (message[0] === STREAM.stdin_end) session.endInput();
}

interface Control {
  type?: unknown;
  rows?: unknown;
  cols?: unknown;
  signal?: unknown;
}

/** A message about the command; unknown ones are for later versions, and ignored. */
export function applyControl(session: ExecSession, text: string): void {
  const { type, rows, cols, signal } = JSON.parse(text) as Control;
  if (type === "resize") {
    const size = { rows: Number(rows), cols: Number(cols) };
    if (!isSide(size.rows) || !isSide(size.cols)) fail("invalid_request", "rows and cols are no size of a terminal");
    session.resize(size);
  } else if (type === "signal") {
    const name = parseSignal(signal, "signal");
    if (name) session.signal(name);
  }
}
