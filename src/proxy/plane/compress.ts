import type { Socket } from "node:net";
import { type BrotliCompress, constants, createBrotliCompress, createGzip, type Gzip } from "node:zlib";
import type { PortOptions } from "../table.ts";
import { CHUNKED, type ResponseHead } from "./http1/head.ts";
import type { Exchange, UpstreamConnection } from "./http1/upstream.ts";

const WORTH_IT =
  /^(?:text\/|application\/(?:json|javascript|xml|wasm|manifest\+json|[\w.+-]+\+(?:json|xml))|image\/svg\+xml|font\/)/i;
/** Shorter bodies cost more than they save. */
const SMALL_BYTES = 256;

/** Returns the connection, wrapped to compress the response if the port and the client allow it. */
export function compressing(line: UpstreamConnection, accepts: string, options: PortOptions): UpstreamConnection {
  const encoding = options.compress ? chosen(accepts) : undefined;
  return encoding ? new Compressing(line, encoding) : line;
}

function chosen(accepts: string): "br" | "gzip" | undefined {
  const offered = accepts.split(",").map((one) => one.trim().toLowerCase());
  const takes = (name: string): boolean =>
    offered.some((one) => one === name || (one.startsWith(`${name};`) && !/q=0(?:\.0*)?$/.test(one)));
  return takes("br") ? "br" : takes("gzip") ? "gzip" : undefined;
}

/** Compresses the response between machine and client. */
class Compressing implements Exchange, UpstreamConnection {
  readonly #line: UpstreamConnection;
  readonly #encoding: "br" | "gzip";
  #client: Exchange | undefined;
  #packer: BrotliCompress | Gzip | undefined;
  #trailers = "";
  /** The machine's part is done: its connection may already be in use again. */
  #over = false;

  constructor(line: UpstreamConnection, encoding: "br" | "gzip") {
    this.#line = line;
    this.#encoding = encoding;
  }

  // Towards the machine.

  get reused(): boolean {
    return this.#line.reused;
  }

  begin(exchange: Exchange, head: string, body: { complete: boolean; chunked: boolean }): void {
    this.#client = exchange;
    this.#line.begin(this, head, body);
  }

  write(chunk: Buffer): boolean {
    return this.#line.write(chunk);
  }

  end(trailers: string): void {
    this.#line.end(trailers);
  }

  pause(): void {
    if (this.#packer) this.#packer.pause();
    else this.#line.pause();
  }

  resume(): void {
    if (this.#packer) this.#packer.resume();
    else this.#line.resume();
  }

  abandon(): void {
    this.#client = undefined;
    this.#packer?.destroy();
    if (!this.#over) this.#line.abandon();
  }

  // Towards the client.

  get method(): string {
    return this.#client?.method ?? "GET";
  }

  /** Called from both sides: true while either still needs the memory. */
  get unsent(): boolean {
    return this.#packer !== undefined || this.#line.unsent || (this.#client?.unsent ?? false);
  }

  informed(head: ResponseHead): void {
    this.#client?.informed(head);
  }

  answered(head: ResponseHead): void {
    if (!suits(head)) {
      this.#client?.answered(head);
      return;
    }
    this.#client?.answered(packed(head, this.#encoding));
    // The client may not accept this response.
    if (!this.#client) return;
    const packer =
      this.#encoding === "br"
        ? createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })
        : createGzip({ level: 5 });
    this.#packer = packer;
    packer.on("data", (chunk: Buffer) => {
      this.#client?.data(chunk);
      this.#client?.flush();
    });
    packer.on("drain", () => this.#over || this.#line.resume());
    packer.on("end", () => this.#client?.ended(this.#trailers));
    packer.on("error", (problem) => this.#client?.failed(problem, false));
  }

  data(chunk: Buffer, module?: number): void {
    if (!this.#packer) this.#client?.data(chunk, module);
    else if (!this.#packer.write(chunk)) this.#line.pause();
  }

  flush(): void {
    // Flushes what the machine sent together, instead of waiting for a full compressor buffer: it may be a stream.
    if (this.#packer && !this.#packer.writableEnded) {
      this.#packer.flush(this.#encoding === "br" ? constants.BROTLI_OPERATION_FLUSH : constants.Z_SYNC_FLUSH);
    }
    this.#client?.flush();
  }

  ended(trailers: string): void {
    this.#over = true;
    if (!this.#packer) {
      this.#client?.ended(trailers);
      return;
    }
    this.#trailers = trailers;
    this.#packer.end();
  }

  upgraded(head: ResponseHead, socket: Socket, rest: Buffer): void {
    this.#over = true;
    this.#client?.upgraded(head, socket, rest);
  }

  failed(problem: Error, untouched: boolean): void {
    this.#over = true;
    this.#packer?.destroy();
    this.#client?.failed(problem, untouched);
  }

  drained(): void {
    this.#client?.drained();
  }
}

function field(head: ResponseHead, name: string): string | undefined {
  for (let i = 0; i < head.fields.length; i += 2) if (head.fields[i] === name) return head.fields[i + 1];
  return undefined;
}

function suits(head: ResponseHead): boolean {
  if (head.length === 0 || (head.length > 0 && head.length < SMALL_BYTES) || head.status === 206) return false;
  if (field(head, "content-encoding") !== undefined || field(head, "content-range") !== undefined) return false;
  if (/\bno-transform\b/i.test(field(head, "cache-control") ?? "")) return false;
  return WORTH_IT.test(field(head, "content-type") ?? "");
}

/** The response head for the compressed body: without a length, and with a weak ETag. */
function packed(head: ResponseHead, encoding: string): ResponseHead {
  const fields: string[] = [];
  for (let i = 0; i < head.fields.length; i += 2) {
    const [name = "", value = ""] = [head.fields[i], head.fields[i + 1]];
    if (name === "accept-ranges") continue;
    fields.push(name, name === "etag" && !value.startsWith("W/") ? `W/${value}` : value);
  }
  fields.push("content-encoding", encoding, "vary", "accept-encoding");
  return { ...head, fields, length: CHUNKED };
}
