/** Connections on which both sides speak whenever they like: WebSocket, after the same checks as any request. */
import { once } from "node:events";
import { type Agent, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { SessionEnded } from "./sessions.ts";

export interface WebSocketSession {
  /** What the other side says, one by one; the next is taken when the last was dealt with. Ends when it has left. */
  messages(): AsyncIterableIterator<string | Buffer, undefined>;
  /** Resolves when it is on its way and there is room for more, or nobody is there any more. */
  send(message: string | Uint8Array): Promise<void>;
  end(code: number, reason: string): void;
  /** Aborted when the other side has left or is silent for too long, or the platform is stopping. */
  signal: AbortSignal;
}

/** Codes of the protocol, for `end`. */
export const CLOSE_CODES = { done: 1000, stopping: 1001, policy: 1008, broken: 1011 } as const;

/** What fits behind a code; the protocol allows 123 bytes. */
const REASON_CHARS = 100;
/** What a line is about; browsers want to hear it again. */
const PROTOCOL = "hangar";
/** A browser cannot send a token as other programs do: it goes with the names of protocols, in base64url. */
const TOKEN_PROTOCOL = /(?:^|,)\s*hangar\.token\.([\w-]+)\s*(?:,|$)/;

interface Waiting {
  socket: Socket;
  head: Buffer;
}
const waiting = new WeakMap<IncomingMessage, Waiting>();

const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: LIMITS.line_message_bytes,
  handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
});

/** Whether a request wants a line. Any other wish for another protocol is passed over, as HTTP allows. */
export const isWebSocketUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

export const acceptsWebSocket = (request: IncomingMessage): boolean => waiting.has(request);

/** Requests for a line go the way of all requests; one that gets none is answered and its connection ends. */
export function handleUpgrades(
  server: Pick<Server, "on">,
  route: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const socket = stream as Socket;
    socket.on("error", () => socket.destroy());
    waiting.set(request, { socket, head });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once("finish", () => socket.destroySoon());
    route(request, response);
  });
}

/** The token of a request for a line, in the words of an Authorization header. */
export function webSocketToken({ headers }: IncomingMessage): string | undefined {
  const encoded = TOKEN_PROTOCOL.exec(headers["sec-websocket-protocol"] ?? "")?.[1];
  return encoded === undefined ? undefined : `Bearer ${Buffer.from(encoded, "base64url").toString()}`;
}

/** Takes the connection over. From here on there is no answer, only messages. */
export function acceptWebSocket(
  request: IncomingMessage,
  response: ServerResponse,
  { clock, ending }: { clock: Clock; ending: AbortSignal },
): WebSocketSession {
  const found = waiting.get(request);
  if (!found || !isHandshake(request)) fail("upgrade_required", "this endpoint is a WebSocket (version 13)");
  const { socket, head } = found;
  response.detachSocket(socket);
  let opened: WebSocket | undefined;
  sockets.handleUpgrade(request, socket, head, (one) => {
    opened = one;
  });
  if (!opened) fail("request_timeout", "the client disconnected");
  return new OpenSession(opened, clock, ending);
}

/** The other end, for one process of the platform that asks another: resolves when the other has taken the line. */
export async function openWebSocket(
  url: string,
  { agent, clock, ending, signal }: { agent: Agent; clock: Clock; ending: AbortSignal; signal: AbortSignal },
): Promise<WebSocketSession> {
  const socket = new WebSocket(url, { agent, perMessageDeflate: false, maxPayload: LIMITS.line_message_bytes });
  // Nothing is taken before somebody listens.
  socket.once("open", () => socket.pause());
  await once(socket, "open", { signal }).catch((thrown: unknown) => {
    socket.on("error", () => {});
    socket.terminate();
    throw thrown;
  });
  return new OpenSession(socket, clock, ending);
}

const isHandshake = ({ headers }: IncomingMessage): boolean =>
  headers["sec-websocket-version"] === "13" && /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "");

class OpenSession implements WebSocketSession {
  readonly signal: AbortSignal;
  readonly #socket: WebSocket;
  readonly #gone = new AbortController();
  readonly #came: (string | Buffer)[] = [];
  #wake = (): void => {};

  constructor(socket: WebSocket, clock: Clock, ending: AbortSignal) {
    this.#socket = socket;
    this.signal = AbortSignal.any([this.#gone.signal, ending]);
    socket.on("message", (data: RawData, binary: boolean) => {
      this.#came.push(binary ? (data as Buffer) : (data as Buffer).toString());
      socket.pause();
      this.#wake();
    });
    // The reason comes with "close", which follows in any case.
    socket.on("error", () => {});
    socket.once("close", () => {
      this.#gone.abort();
      this.#wake();
    });
    const stop = (): void => {
      const { reason } = ending as { reason: unknown };
      if (reason instanceof SessionEnded) this.end(CLOSE_CODES.policy, reason.message.slice(0, REASON_CHARS));
      else this.end(CLOSE_CODES.stopping, "the platform is shutting down");
    };
    if (ending.aborted) stop();
    else ending.addEventListener("abort", stop, { once: true });
    this.#gone.signal.addEventListener("abort", () => ending.removeEventListener("abort", stop), { once: true });
    void this.#heartbeat(clock);
  }

  async *messages(): AsyncGenerator<string | Buffer, undefined> {
    for (;;) {
      const next = this.#came.shift();
      if (next !== undefined) yield next;
      else if (this.#gone.signal.aborted) return;
      else {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#socket.resume();
        await woken;
      }
    }
  }

  async send(message: string | Uint8Array): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    await new Promise<void>((resolve) => {
      this.#socket.send(message, () => resolve());
    });
  }

  end(code: number, reason: string): void {
    // Else its answer would wait behind what nobody takes any more.
    this.#came.length = 0;
    this.#socket.resume();
    this.#socket.close(code, reason);
  }

  /** Somebody whose network went away says nothing, not even goodbye. */
  async #heartbeat(clock: Clock): Promise<void> {
    let heard = true;
    this.#socket.on("pong", () => {
      heard = true;
    });
    const { signal } = this.#gone;
    while (!signal.aborted) {
      await clock.sleep(LIMITS.stream_heartbeat_ms, signal).catch(() => {});
      if (signal.aborted) return;
      // One that is held back is not heard: its answers wait behind what was not taken yet.
      if (!heard && !this.#socket.isPaused) return this.#socket.terminate();
      heard = false;
      this.#socket.ping();
    }
  }
}
