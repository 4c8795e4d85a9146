/** Terminals into machines: their limits, and the WebSocket messages of an open one. */
import type { Duplex } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import { bad, parseSignal } from "../api/routing.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Ref, RuntimeDriver, Terminal, TerminalOptions } from "./driver.ts";
import { endWhenIdle, SessionCounts, writeTo } from "./machine-sessions.ts";

/** Prefers bash if it exists. */
const SHELL = ["sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

export class Terminals {
  readonly #driver: RuntimeDriver;
  readonly #clock: Clock;
  readonly #counts = new SessionCounts("terminals", { per_machine: "terminals_per_machine", all: "terminals" });

  constructor({ driver, clock }: { driver: RuntimeDriver; clock: Clock }) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Refuses when the limit is reached. */
  check(id: string): void {
    this.#counts.check(id);
  }

  /** Opens a terminal and relays it until it ends or the client disconnects. */
  async run(
    ref: Ref,
    wanted: Partial<TerminalOptions> & Pick<TerminalOptions, "command">,
    { signal, accept }: { signal: AbortSignal; accept: () => WebSocketSession },
  ): Promise<void> {
    await this.#counts.during(ref.id, async () => {
      const command = wanted.command.length > 0 ? wanted.command : SHELL;
      const input = { term: "xterm-256color", rows: 24, cols: 80, ...wanted, command };
      const terminal = await this.#driver.terminal(ref, input, signal);
      try {
        await relayTerminal(accept(), terminal, this.#clock);
      } finally {
        terminal.hangUp();
      }
    });
  }
}

/**
 * Relays a terminal over a WebSocket. Binary messages are input and output; text messages control the terminal, and the
 * last one reports how it ended.
 */
export async function relayTerminal(session: WebSocketSession, terminal: Terminal, clock: Clock): Promise<void> {
  const over = new AbortController();
  const life = { last: clock.monotonic() };
  const hangUp = (): void => terminal.hangUp();
  if (session.signal.aborted) hangUp();
  session.signal.addEventListener("abort", hangUp, { once: true });
  try {
    void endWhenIdle(session, life, { clock, limit: "terminal_idle_ms", signal: over.signal });
    void forwardInput(session, terminal, () => {
      life.last = clock.monotonic();
    });
    for await (const piece of screenOf(terminal.stream)) {
      life.last = clock.monotonic();
      await session.send(piece);
    }
    if (session.signal.aborted) return;
    await session.send(JSON.stringify({ ended: await terminal.ended }));
    session.end(CLOSE_CODES.done, "the program has ended");
  } finally {
    over.abort();
    session.signal.removeEventListener("abort", hangUp);
  }
}

/** Yields output until the end or a hang-up. */
async function* screenOf(stream: Duplex): AsyncGenerator<Buffer> {
  try {
    for await (const piece of stream) yield piece as Buffer;
  } catch {
    // Hung up: the rest is not read.
  }
}

async function forwardInput(session: WebSocketSession, terminal: Terminal, touched: () => void): Promise<void> {
  try {
    for await (const message of session.messages()) {
      touched();
      if (typeof message === "string") handleControl(terminal, message);
      else await writeTo(terminal.stream, message);
    }
  } catch (thrown) {
    const reason = thrown instanceof ApiError ? thrown.message : "the message cannot be read";
    session.end(CLOSE_CODES.policy, reason.slice(0, REASON_CHARS));
  }
}

/** Fits into a WebSocket close reason (123 bytes) in any script. */
const REASON_CHARS = 40;

function handleControl(terminal: Terminal, message: string): void {
  const said = JSON.parse(message) as { resize?: { rows?: unknown; cols?: unknown }; signal?: unknown };
  if (said.resize) terminal.resize({ rows: side(said.resize.rows, "rows"), cols: side(said.resize.cols, "cols") });
  const name = parseSignal(said.signal, "signal");
  if (name) terminal.signal(name);
}

function side(value: unknown, name: string): number {
  const good = Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MACHINE_LIMITS.terminal_side;
  return good ? Number(value) : bad(`resize.${name}`, `is 1 to ${MACHINE_LIMITS.terminal_side}`);
}
