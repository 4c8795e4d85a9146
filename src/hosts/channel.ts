/**
 * Connections between processes of the platform, for what does not fit in a database: logs, exec and terminals. TLS
 * 1.3 with a pre-shared key from the store authenticates both ends, so there are no certificates to create, renew or
 * lose. Each connection uses ephemeral keys (X25519), so a recording cannot be decrypted with a key that leaks
 * later.
 */
import { Agent, createServer, request, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { HTTP_BOUNDS, isRefused, refuseBytes, strictly } from "#http/strict-server.ts";
import { acceptWebSocket, CLOSE_CODES, handleUpgrades, openWebSocket, type WebSocketSession } from "#http/websocket.ts";
import { HOST_LIMITS } from "./limits.ts";

/** Calls that the other end accepts: JSON in, JSON out. */
export type CallHandlers = Record<string, (body: unknown, signal: AbortSignal) => Promise<unknown>>;

/**
 * Streams that the other end accepts: a stream begins like a call; the returned function runs after it was accepted.
 */
export type StreamHandlers = Record<
  string,
  (body: unknown, signal: AbortSignal) => Promise<(session: WebSocketSession) => Promise<void>>
>;

const IDENTITY = "hangar";
const TLS = { ciphers: "TLS_AES_128_GCM_SHA256", minVersion: "TLSv1.3", maxVersion: "TLSv1.3" } as const;
const keyOf = (sealer: Sealer): Buffer => sealer.derive("channel between hosts");

export interface ChannelListener {
  /** `host:port` to listen on. */
  address: string;
  close(): Promise<void>;
}

export async function listenForPeers(parts: {
  listen: { host: string; port: number };
  sealer: Sealer;
  calls: CallHandlers;
  streams: StreamHandlers;
  clock: Clock;
  log: Log;
}): Promise<ChannelListener> {
  const { listen, calls, streams, clock, log } = parts;
  const ending = new AbortController();
  const key = keyOf(parts.sealer);
  const server = createServer({
    ...TLS,
    ...HTTP_BOUNDS,
    handshakeTimeout: HOST_LIMITS.handshake_ms,
    pskCallback: (_socket, identity) => (identity === IDENTITY ? key : null),
  });
  server.maxHeadersCount = 32;
  server.on("clientError", refuseBytes);
  const unknown = boundHandshakes(server);
  const listener = strictly((request, answer) => {
    const disconnected = new AbortController();
    answer.on("close", () => disconnected.abort());
    const work = text(request).then(async (body) => {
      const call = calls[(request.url ?? "").slice(1)] ?? fail("not_found", "no such call");
      return (await call(JSON.parse(body), disconnected.signal)) ?? null;
    });
    work.then(
      (result) => answer.end(JSON.stringify({ result })),
      (thrown: unknown) => {
        answer.writeHead(500).end(JSON.stringify(refusal(thrown)));
      },
    );
  });
  server.on("request", listener);
  handleUpgrades(server, (upgrade, response) => {
    if (isRefused(upgrade, response)) return;
    try {
      const session = acceptWebSocket(upgrade, response, { clock, ending: ending.signal });
      void handleStream(session, streams[(upgrade.url ?? "").slice(1)]);
    } catch (thrown) {
      response.writeHead(400).end(JSON.stringify(refusal(thrown)));
    }
  });
  server.on("tlsClientError", (error) => log.warn({ error }, "a connection without the platform's key was refused"));
  await listening(server, listen);
  const { address, port } = server.address() as AddressInfo;
  return {
    address: `${address.includes(":") ? `[${address}]` : address}:${port}`,
    async close() {
      ending.abort();
      server.closeAllConnections();
      for (const socket of unknown.values()) socket.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

/** Unauthenticated connections must not exhaust those of others: past the limit, the oldest is closed. */
function boundHandshakes(server: Server): ReadonlyMap<string, Socket> {
  const unknown = new Map<string, Socket>();
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.on("connection", (socket: Socket) => {
    const name = nameOf(socket);
    const [oldest] = unknown.size >= HOST_LIMITS.handshakes ? unknown : [];
    if (oldest) unknown.delete(oldest[0]);
    oldest?.[1].destroy();
    unknown.set(name, socket);
    socket.once("close", () => {
      if (unknown.get(name) === socket) unknown.delete(name);
    });
  });
  server.on("secureConnection", (socket: Socket) => void unknown.delete(nameOf(socket)));
  return unknown;
}

/** The first message names the stream, the response to it accepts or refuses. */
async function handleStream(session: WebSocketSession, open: StreamHandlers[string] | undefined): Promise<void> {
  try {
    const { value: first } = await session.messages().next();
    if (open === undefined || typeof first !== "string") fail("not_found", "no such WebSocket route");
    const goOn = await open(JSON.parse(first), session.signal);
    await session.send(JSON.stringify({}));
    await goOn(session);
  } catch (thrown) {
    await session.send(JSON.stringify(refusal(thrown)));
    session.end(CLOSE_CODES.broken, "refused");
  }
}

/** What the other end answers with: the result, or a refusal. */
export interface CallReply {
  result?: unknown;
  code?: string;
  error?: string;
}

const refusal = (thrown: unknown): CallReply => ({
  code: thrown instanceof ApiError ? thrown.code : "",
  error: messageOf(thrown),
});

export function refused({ code, error }: CallReply): never {
  if (code) throw new ApiError(code as ErrorCode, error ?? "");
  throw new Error(error);
}

async function listening(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
}

/**
 * Makes calls and streams to other processes. Connections are kept alive, so that a page of logs costs no handshake.
 */
export class Channel {
  readonly #agent: Agent;
  readonly #clock: Clock;
  readonly #ending = new AbortController();

  constructor(sealer: Sealer, clock: Clock) {
    const key = keyOf(sealer);
    this.#clock = clock;
    this.#agent = new Agent({
      ...TLS,
      keepAlive: true,
      pskCallback: () => ({ identity: IDENTITY, psk: key }),
      // The key is the identity, whatever the address is called (TLS-PSK). A server without it shows a certificate, and
      // none is trusted.
      ca: [],
      checkServerIdentity: (_host, certificate) =>
        Object.keys(certificate).length === 0 ? undefined : new Error("it does not have the platform's key"),
    });
  }

  async call(address: string, name: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    const sent = JSON.stringify(body);
    const time = AbortSignal.timeout(HOST_LIMITS.call_ms);
    const until = signal ? AbortSignal.any([signal, time]) : time;
    const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const url = `https://${address}/${name}`;
      const asking = request(url, { method: "POST", agent: this.#agent, signal: until }, (response) => {
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, text: body }), reject);
      });
      asking.on("error", reject);
      asking.end(sent);
    }).catch((cause: unknown) => unreachable(address, cause));
    const reply = JSON.parse(answer.text) as CallReply;
    if (answer.status === 200) return reply.result;
    return refused({ error: `the host answered ${answer.status}`, ...reply });
  }

  /** Opens a stream to another process, if it accepts. */
  async stream(address: string, name: string, body: unknown, signal: AbortSignal): Promise<WebSocketSession> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(HOST_LIMITS.call_ms)]);
    const parts = { agent: this.#agent, clock: this.#clock, ending: this.#ending.signal, signal: until };
    const session = await openWebSocket(`wss://${address}/${name}`, parts).catch((cause: unknown) =>
      unreachable(address, cause),
    );
    const late = (): void => session.end(CLOSE_CODES.policy, "it took too long");
    until.addEventListener("abort", late, { once: true });
    try {
      await session.send(JSON.stringify(body));
      const { value: answer } = await session.messages().next();
      if (typeof answer !== "string") unreachable(address, new Error("it hung up"));
      const reply = JSON.parse(answer) as CallReply;
      return reply.error === undefined ? session : refused(reply);
    } finally {
      until.removeEventListener("abort", late);
    }
  }

  close(): void {
    this.#ending.abort();
    this.#agent.destroy();
  }
}

function unreachable(address: string, cause: unknown): never {
  fail("host_unreachable", `the host at ${address} does not respond: ${messageOf(cause)}`, { cause, retry_after_s: 2 });
}
