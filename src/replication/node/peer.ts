/** Requests from one node to another: signed when nodes have credentials, bounded, and with the answer's proof checked. */
import { createReadStream, createWriteStream, rmSync } from "node:fs";
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { request as httpRequest } from "#http/node-http.ts";
import { BODY_HEADER, type Credentials, headerOf, PROOF_HEADER, sha256 } from "../credentials/credentials.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { RawBody } from "./raw-body.ts";

export const TERM_HEADER = "hangar-term";

/** The peer refused the request. */
export class PeerRefused extends Error {
  override readonly name = "PeerRefused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface PeerResponse {
  response: IncomingMessage;
  /** The term of which the peer is primary; 0 when it is not. */
  term: number;
}

/** A body in memory, or a file whose digest is known. */
type Body = Buffer | { file: string; bytes: number; sha256: string };

export class Peer {
  readonly url: string;
  readonly #clock: Clock;
  readonly #credentials: Credentials | undefined;
  readonly #silence_ms: number;

  constructor(
    url: string,
    clock: Clock,
    credentials: Credentials | undefined,
    silence_ms: number = REPLICATION_LIMITS.silence_ms,
  ) {
    this.url = url.replace(/\/+$/, "");
    this.#clock = clock;
    this.#credentials = credentials;
    this.#silence_ms = silence_ms;
  }

  /** host:port, as events name it. */
  get hostname(): string {
    return new URL(this.url).host;
  }

  /** The response if its status is 200; the caller reads the body. */
  async open(method: string, path: string, value: unknown, signal: AbortSignal): Promise<PeerResponse> {
    const body = value === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(value));
    return await this.#send(method, path, body, signal);
  }

  /** The same for an endless response. */
  async openStream(path: string, value: unknown, signal: AbortSignal): Promise<PeerResponse & { body: RawBody }> {
    const body = new RawBody();
    return { ...(await this.#send("POST", path, Buffer.from(JSON.stringify(value)), signal, body.connect)), body };
  }

  async json(method: string, path: string, value: unknown, signal: AbortSignal): Promise<unknown> {
    const { response } = await this.open(method, path, value, signal);
    return JSON.parse((await readBody(response)).toString("utf8")) as unknown;
  }

  /** Sends a file as the body, and reads a JSON response. */
  async sendFile(path: string, body: Exclude<Body, Buffer>, signal: AbortSignal): Promise<unknown> {
    const { response } = await this.#send("POST", path, body, signal);
    return JSON.parse((await readBody(response)).toString("utf8")) as unknown;
  }

  /** Writes the response to a new file. Returns the headers. */
  async fetchFile(path: string, file: string, signal: AbortSignal): Promise<IncomingMessage["headers"]> {
    const { response } = await this.open("GET", path, undefined, signal);
    let made = false;
    const target = createWriteStream(file, { flags: "wx" }).once("open", () => {
      made = true;
    });
    try {
      await pipeline(response, target);
    } catch (error) {
      // A partial database is useless; an existing file is not ours.
      if (made) rmSync(file, { force: true });
      throw error;
    }
    return response.headers;
  }

  async #send(
    method: string,
    path: string,
    body: Body,
    signal: AbortSignal,
    createConnection?: RawBody["connect"],
  ): Promise<PeerResponse> {
    const in_memory = body instanceof Uint8Array;
    const body_sha256 = in_memory ? sha256(body) : body.sha256;
    const signed = await this.#credentials?.sign({ method, path, body_sha256 }, this.#clock.now());
    const headers: OutgoingHttpHeaders = {
      "content-type": in_memory ? "application/json" : "application/vnd.sqlite3",
      "content-length": in_memory ? body.length : body.bytes,
      [BODY_HEADER]: body_sha256,
      ...signed?.headers,
    };
    const response = await new Promise<IncomingMessage>((done, failed) => {
      const request = httpRequest(`${this.url}${path}`, {
        method,
        headers,
        signal,
        ...(createConnection && { createConnection }),
      });
      request.on("response", done);
      request.on("error", failed);
      request.setTimeout(this.#silence_ms, () => this.#endIfSilent(request));
      if (in_memory) request.end(body);
      else pipeline(createReadStream(body.file), request).catch(failed);
    });
    const term = Number(response.headers[TERM_HEADER] ?? 0);
    if (response.statusCode !== 200) {
      throw new PeerRefused(response.statusCode ?? 0, `${path}: ${errorIn(await readBody(response))}`);
    }
    if (this.#credentials && signed) await this.#checkProof(this.#credentials, response, signed.nonce, term);
    return { response, term };
  }

  /** After this process itself was busy for long, received data still waits to be read. */
  #endIfSilent(request: ClientRequest): void {
    const before = request.socket?.bytesRead;
    setTimeout(() => {
      if (request.socket?.bytesRead === before) request.destroy(new Error(`${this.url} is silent`));
    }, REPLICATION_LIMITS.reconnect_ms).unref();
  }

  async #checkProof(credentials: Credentials, response: IncomingMessage, nonce: string, term: number): Promise<void> {
    const proof = headerOf(response.headers, PROOF_HEADER);
    if (await credentials.proves(proof, nonce, term, this.#clock.now())) return;
    response.destroy();
    throw new PeerRefused(0, `${this.url} does not prove that it is a node of this cluster`);
  }
}

/** The text of an error response, or the body as it is. */
function errorIn(body: Buffer): string {
  const text = body.toString("utf8");
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : text;
  } catch {
    return text;
  }
}

/** Reads a whole body, up to the named limit. */
export async function readBody(
  message: IncomingMessage,
  limit: "body_bytes" | "observed_bytes" | "halt_bytes" = "body_bytes",
): Promise<Buffer> {
  const most = REPLICATION_LIMITS[limit];
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of message as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > most) throw new PeerRefused(413, `the body is larger than ${limit}, ${most}`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
