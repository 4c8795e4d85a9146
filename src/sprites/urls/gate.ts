/** Requests to the URLs of sprites: the edge proxy sends them here, and from here they go to the program in the sprite. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request as requestOf, type Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "#core/assert.ts";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { HTTP_BOUNDS, refuseBytes, strictly } from "#http/strict-server.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteView } from "../types.ts";
import { type Admission, Refusal } from "./admission.ts";
import { answerHeaders, requestHeaders, upgradeHead } from "./headers.ts";
import type { Programs } from "./program.ts";

interface GateParts {
  admission: Pick<Admission, "admit">;
  sprites: Pick<SpriteService, "use">;
  programs: Programs;
  log: Log;
}

/** What comes after the head of a request that wants another protocol. */
interface Raw {
  socket: Duplex;
  head: Buffer;
}

/** Listens on loopback. Whoever sends a request past the edge proxy is judged in the same way. */
export class UrlGate {
  readonly #parts: GateParts;
  readonly #server: Server;
  readonly #open = new Map<string, number>();
  #all = 0;

  constructor(parts: GateParts) {
    this.#parts = parts;
    // The edge proxy has the timeouts of bodies, and closes its connections.
    const own = { maxHeaderSize: SPRITE_LIMITS.sprite_url_head_bytes, requestTimeout: 0, keepAliveTimeout: 0 };
    const listener = strictly((request, response) => void this.#serve(request, response));
    this.#server = createServer({ ...HTTP_BOUNDS, ...own }, listener);
    this.#server.on("clientError", refuseBytes);
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      const response = new ServerResponse(request);
      // After another protocol, or a refusal of it, the connection carries no further request.
      response.shouldKeepAlive = false;
      response.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]);
      response.once("finish", () => socket.end());
      void this.#serve(request, response, { socket, head });
    });
  }

  /** The port. */
  async start(): Promise<number> {
    this.#server.listen({ host: "127.0.0.1", port: 0 });
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse, raw?: Raw): Promise<void> {
    const left = new AbortController();
    const leave = (): void => left.abort();
    response.once("close", leave);
    raw?.socket.once("close", leave);
    try {
      const sprite = await this.#parts.admission.admit(request);
      if (raw && hasBody(request)) throw new Refusal(400, "a request for another protocol has no body");
      await this.#during(sprite, () =>
        this.#parts.sprites.use(
          sprite,
          async (ref) => {
            const stream = await this.#parts.programs.connect(ref, sprite.name, left.signal);
            try {
              await exchange(request, response, { sprite, stream, raw, signal: left.signal });
            } finally {
              stream.destroy();
            }
          },
          left.signal,
        ),
      );
    } catch (thrown) {
      if (!left.signal.aborted) this.#refuse(request, response, thrown);
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
    const known = thrown instanceof Refusal || thrown instanceof ApiError;
    if (!known) this.#parts.log.error({ error: thrown }, "a request to a sprite failed");
    if (response.headersSent) return void response.destroy();
    const status = thrown instanceof Refusal ? thrown.status : thrown instanceof ApiError ? thrown.http : 500;
    response.writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      ...(status === 401 ? { "www-authenticate": 'Bearer realm="sprite"' } : {}),
      // The rest of its body is nobody's.
      ...(hasBody(request) ? { connection: "close" } : {}),
    });
    response.end(`${known ? messageOf(thrown) : "the platform failed; its log says why"}\n`);
  }

  async #during({ id, name }: SpriteView, work: () => Promise<void>): Promise<void> {
    const { sprite_url_requests, sprite_url_requests_all } = SPRITE_LIMITS;
    const open = this.#open.get(id) ?? 0;
    if (open >= sprite_url_requests)
      throw new Refusal(503, `sprite ${name} has ${open} requests at a time (limit sprite_url_requests)`);
    if (this.#all >= sprite_url_requests_all)
      throw new Refusal(503, "there are too many requests at a time (limit sprite_url_requests_all); try again");
    this.#open.set(id, open + 1);
    this.#all++;
    try {
      await work();
    } finally {
      this.#all--;
      const left = (this.#open.get(id) ?? 1) - 1;
      if (left > 0) this.#open.set(id, left);
      else this.#open.delete(id);
    }
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

interface Exchange {
  sprite: SpriteView;
  stream: Duplex;
  raw: Raw | undefined;
  signal: AbortSignal;
}

/** Resolves when the answer is sent, or both directions of another protocol have ended. */
async function exchange(request: IncomingMessage, response: ServerResponse, parts: Exchange): Promise<void> {
  const { sprite, stream, raw, signal } = parts;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onward = requestOf({
    method: request.method ?? "GET",
    path: request.url ?? "/",
    headers: requestHeaders(request, sprite.url_auth),
    setHost: false,
    maxHeaderSize: SPRITE_LIMITS.sprite_url_head_bytes,
    createConnection: () => stream,
    signal,
  });
  onward.on("error", (error) =>
    reject(new Refusal(502, `the program in the sprite does not answer: ${error.message}`)),
  );
  onward.on("response", (answer) => void relay(answer, response).then(resolve, reject));
  onward.on("upgrade", (answer: IncomingMessage, there: Duplex, head: Buffer) => {
    if (!raw) return reject(new Refusal(502, "the program in the sprite changed the protocol without being asked"));
    response.detachSocket(raw.socket as Parameters<ServerResponse["detachSocket"]>[0]);
    raw.socket.write(upgradeHead(answer));
    if (head.length > 0) raw.socket.write(head);
    if (raw.head.length > 0) there.write(raw.head);
    void Promise.allSettled([pipeline(raw.socket, there), pipeline(there, raw.socket)]).then(() => resolve());
  });
  if (raw) onward.end();
  else pipeline(request, onward).catch(() => {});
  await promise;
}

async function relay(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", answerHeaders(answer));
  // Events and long answers begin before their first byte.
  response.flushHeaders();
  answer.once("end", () => {
    if (answer.rawTrailers.length > 0) response.addTrailers(pairsOf(answer.rawTrailers));
  });
  await pipeline(answer, response);
}

const pairsOf = (flat: readonly string[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] ?? "", flat[2 * at + 1] ?? ""]);
