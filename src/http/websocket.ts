/** WebSocket connections, opened after the same checks as any request. */
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
  /** Messages of the other side, with back-pressure. Ends when it disconnects. */
  messages(): AsyncIterableIterator<string | Buffer, undefined>;
  /** Resolves when the message was sent and the buffer has room, or the other side has disconnected. */
  send(message: string | Uint8Array): Promise<void>;
  end(code: number, reason: string): void;
  /** Aborted when the other side disconnects or is silent for too long, or the platform stops. */
  signal: AbortSignal;
}

/** Close codes of the protocol. */
export const CLOSE_CODES = { done: 1000, stopping: 1001, policy: 1008, broken: 1011 } as const;

/** Maximum close reason; the protocol allows 123 bytes. */
const REASON_CHARS = 100;
/** The subprotocol, which browsers expect in the response. */
const PROTOCOL = "hangar";
/** A browser cannot set Authorization, so the token is sent as a subprotocol, in base64url. */
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
  maxPayload: LIMITS.websocket_message_bytes,
  handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
});

/** Whether a request is a WebSocket upgrade. Other upgrades are ignored, as HTTP allows. */
export const isWebSocketUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

export const acceptsWebSocket = (request: IncomingMessage): boolean => waiting.has(request);

/** Upgrade requests pass through the normal handler; a refused one is answered and its connection closed. */
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

/** The token of an upgrade request, as an Authorization header. */
export function webSocketToken({ headers }: IncomingMessage): string | undefined {
  const encoded = TOKEN_PROTOCOL.exec(headers["sec-websocket-protocol"] ?? "")?.[1];
  return encoded === undefined ? undefined : `Bearer ${Buffer.from(encoded, "base64url").toString()}`;
}

/** Accepts the upgrade. From here on there are only messages. */
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

/** The client side, between processes of the platform: resolves when the server has accepted. */
export async function openWebSocket(
  url: string,
  { agent, clock, ending, signal }: { agent: Agent; clock: Clock; ending: AbortSignal; signal: AbortSignal },
): Promise<WebSocketSession> {
  const socket = new WebSocket(url, { agent, perMessageDeflate: false, maxPayload: LIMITS.websocket_message_bytes });
  // Paused until someone listens.
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
  readonly #closed = new AbortController();
  readonly #came: (string | Buffer)[] = [];
  #wake = (): void => {};

  constructor(socket: WebSocket, clock: Clock, ending: AbortSignal) {
    this.#socket = socket;
    this.signal = AbortSignal.any([this.#closed.signal, ending]);
    socket.on("message", (data: RawData, binary: boolean) => {
      this.#came.push(binary ? (data as Buffer) : (data as Buffer).toString());
      socket.pause();
      this.#wake();
    });
    // The reason comes with "close", which always follows.
    socket.on("error", () => {});
    socket.once("close", () => {
      this.#closed.abort();
      this.#wake();
    });
    const stop = (): void => {
      const { reason } = ending as { reason: unknown };
      if (reason instanceof SessionEnded) this.end(CLOSE_CODES.policy, reason.message.slice(0, REASON_CHARS));
      else this.end(CLOSE_CODES.stopping, "the platform is shutting down");
    };
    if (ending.aborted) stop();
    else ending.addEventListener("abort", stop, { once: true });
    this.#closed.signal.addEventListener("abort", () => ending.removeEventListener("abort", stop), { once: true });
    void this.#heartbeat(clock);
  }

  async *messages(): AsyncGenerator<string | Buffer, undefined> {
    for (;;) {
      const next = this.#came.shift();
      if (next !== undefined) yield next;
      else if (this.#closed.signal.aborted) return;
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
    // Otherwise the close would wait behind unread messages.
    this.#came.length = 0;
    this.#socket.resume();
    this.#socket.close(code, reason);
  }

  /** Detects a peer that has lost its network, which sends no close. */
  async #heartbeat(clock: Clock): Promise<void> {
    let heard = true;
    this.#socket.on("pong", () => {
      heard = true;
    });
    const { signal } = this.#closed;
    while (!signal.aborted) {
      await clock.sleep(LIMITS.stream_heartbeat_ms, signal).catch(() => {});
      if (signal.aborted) return;
      // A paused socket cannot receive pongs: they wait behind unread messages.
      if (!heard && !this.#socket.isPaused) return this.#socket.terminate();
      heard = false;
      this.#socket.ping();
    }
  }
}
