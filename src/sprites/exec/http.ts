/**
 * A command over plain HTTP: its input is the body, its output chunks that begin with the number of their stream. The
 * chunks have no length of their own, so clients need the transport's. What a client reads late it reads as one, so they
 * come apart, and what it reads in pieces it cannot put together, so they are small.
 */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import type { TerminalEnd } from "#machines/runtime/driver.ts";
import { STREAM } from "./program.ts";
import type { ExecSession, SessionClient } from "./session.ts";
import { exitByte, framed } from "./websocket.ts";

const CHUNK_BYTES = 32 * 1024;
const CHUNK_GAP_MS = 20;

interface HttpExchange {
  request: IncomingMessage;
  response: ServerResponse;
  signal: AbortSignal;
  clock: Clock;
}

export async function respondWith(
  session: ExecSession,
  { request, response, signal, clock }: HttpExchange,
): Promise<void> {
  response.writeHead(200, { "content-type": "application/octet-stream", "cache-control": "no-store" });
  response.flushHeaders();
  const left = (): void => session.close();
  // Whoever does not come back cannot be told the end: there is nothing to attach to over HTTP.
  response.once("close", left);
  signal.addEventListener("abort", left, { once: true });
  const client = new ChunkClient(response, clock);
  session.attach(client);
  try {
    if (session.input.stdin) void forward(request, session);
    await client.done;
  } finally {
    response.off("close", left);
    signal.removeEventListener("abort", left);
    response.end();
  }
}

async function forward(request: IncomingMessage, session: ExecSession): Promise<void> {
  try {
    for await (const piece of request) await session.write(piece as Buffer);
  } catch {
    // The client has left; so does the command.
  }
  session.endInput();
}

class ChunkClient implements SessionClient {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  /** Resolves when the end was written. */
  readonly done: Promise<void>;
  readonly #done = Promise.withResolvers<void>();
  #queue: Promise<void> = Promise.resolve();

  constructor(response: ServerResponse, clock: Clock) {
    this.#response = response;
    this.#clock = clock;
    this.done = this.#done.promise;
  }

  output(stream: number, piece: Buffer): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      for (let at = 0; at < piece.length; at += CHUNK_BYTES)
        await this.#write(framed(stream, piece.subarray(at, at + CHUNK_BYTES)));
    });
    return this.#queue;
  }

  async ended(how: TerminalEnd): Promise<void> {
    await this.#queue;
    await this.#write(framed(STREAM.exit, Buffer.of(exitByte(how))));
    this.#done.resolve();
  }

  drop(): void {
    this.#response.destroy();
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#response.closed || this.#response.destroyed) return;
    await this.#clock.sleep(CHUNK_GAP_MS);
    if (this.#response.write(bytes)) return;
    const settled = new AbortController();
    const { signal } = settled;
    await Promise.race([once(this.#response, "drain", { signal }), once(this.#response, "close", { signal })]).finally(
      () => settled.abort(),
    );
  }
}
