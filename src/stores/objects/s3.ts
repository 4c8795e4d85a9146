import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { checkKey, type ObjectBody, type ObjectInfo, type ObjectRange, type ObjectStore } from "#core/objects.ts";
import { S3Connection, type S3Request } from "#s3/connection.ts";
import { encode, encodedPath } from "#s3/signature.ts";
import { elements, escaped, textOf } from "#s3/xml.ts";
import { uploadParts } from "./s3-multipart.ts";

export interface S3Place {
  /** Scheme, host and bucket: `https://s3.example/bucket`. */
  endpoint: string;
  /** Prefix of all keys: empty, or a path ending in a slash. */
  prefix: string;
  region: string;
  access_key: string;
  secret_key: string;
}

const LIMITS = {
  /** Requests to the server at a time. */
  connections: 64,
  /** A request fails after so long without a byte in either direction. */
  idle_ms: 120_000,
  /** Attempts per request before the operation fails. */
  tries: 5,
  /** Before the second attempt; doubled before each further one. */
  delay_ms: 200,
  /** Keys per list response and per delete request. */
  page: 1000,
  /** Larger files are uploaded in parts. */
  single_put_bytes: 16 << 20,
} as const;

/** A response of the server that is no success. */
class S3Error extends Error {
  readonly status: number;

  constructor(status: number, xml: string) {
    const code = textOf(xml, "Code");
    super([`HTTP ${status}`, code, textOf(xml, "Message")].filter(Boolean).join(" "));
    this.status = status;
  }
}

/** Stores objects in a bucket of any S3-compatible server. */
export class S3Objects implements ObjectStore {
  readonly place: string;
  readonly #connection: S3Connection;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  #conditional: Promise<boolean> | undefined;

  constructor({ endpoint, prefix, ...server }: S3Place, clock: Clock) {
    const { origin, pathname } = new URL(endpoint);
    this.place = `${endpoint}/${prefix}`;
    this.#bucket = pathname;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#connection = new S3Connection({ origin, ...server }, clock, LIMITS);
  }

  async put(key: string, body: ObjectBody, how: { if_absent?: boolean } = {}): Promise<boolean> {
    checkKey(key);
    if (how.if_absent) {
      // A result is kept; a probe that failed is repeated by the next caller.
      this.#conditional ??= this.#honoursConditions().catch((error: unknown) => {
        this.#conditional = undefined;
        throw error;
      });
      if (!(await this.#conditional)) {
        throw new Error(
          `${this.place} does not honour If-None-Match, so nothing can be put there only if it is absent`,
        );
      }
      return await this.#putIfAbsent(key, body);
    }
    const size = await sizeOf(body);
    if (!(body instanceof Uint8Array) && size > LIMITS.single_put_bytes) {
      const path = this.#path(key);
      await uploadParts((part) => this.#request(`put ${key}`, { path, ...part }), body.file, size);
    } else {
      await this.#try(`put ${key}`, () => this.#put(key, body, size));
    }
    return true;
  }

  async get(key: string, range?: ObjectRange): Promise<Buffer | undefined> {
    checkKey(key);
    if (range?.length === 0) return (await this.head(key)) ? Buffer.alloc(0) : undefined;
    const headers: Record<string, string> = range
      ? { range: `bytes=${range.offset}-${range.offset + range.length - 1}` }
      : {};
    try {
      const { bytes } = await this.#request(`get ${key}`, { method: "GET", path: this.#path(key), headers });
      // A server that ignores ranges sends the whole object.
      return range && bytes.length > range.length ? bytes.subarray(range.offset, range.offset + range.length) : bytes;
    } catch (error) {
      // The range begins behind the object's end.
      if (statusOf(error) === 416) return Buffer.alloc(0);
      return unlessMissing(error);
    }
  }

  async getFile(key: string, path: string): Promise<boolean> {
    checkKey(key);
    const fresh = `${path}.part`;
    try {
      await this.#try(`get ${key}`, async () => {
        const response = await this.#send({ method: "GET", path: this.#path(key) });
        await pipeline(response, createWriteStream(fresh));
      });
      await rename(fresh, path);
      return true;
    } catch (error) {
      await rm(fresh, { force: true });
      return unlessMissing(error) ?? false;
    }
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    try {
      return await this.#try(`look up ${key}`, async () => {
        const response = await this.#send({ method: "HEAD", path: this.#path(key) });
        response.resume();
        return { key, size: Number(response.headers["content-length"] ?? 0) };
      });
    } catch (error) {
      return unlessMissing(error);
    }
  }

  async list(prefix: string): Promise<ObjectInfo[]> {
    const found: ObjectInfo[] = [];
    let next: string | undefined;
    do {
      const first = { "list-type": "2", "max-keys": String(LIMITS.page), prefix: this.#prefix + prefix };
      const query = queryOf(next === undefined ? first : { ...first, "continuation-token": next });
      const { bytes } = await this.#request(`list ${prefix}`, { method: "GET", path: this.#bucket, query });
      const page = bytes.toString("utf8");
      for (const object of elements(page, "Contents")) {
        found.push({
          key: (textOf(object, "Key") ?? "").slice(this.#prefix.length),
          size: Number(textOf(object, "Size")),
        });
      }
      next = textOf(page, "IsTruncated") === "true" ? textOf(page, "NextContinuationToken") : undefined;
    } while (next);
    // Not every server sorts them.
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async delete(keys: readonly string[]): Promise<void> {
    keys.forEach(checkKey);
    for (let at = 0; at < keys.length; at += LIMITS.page) {
      const some = keys.slice(at, at + LIMITS.page);
      const objects = some.map((key) => `<Object><Key>${escaped(this.#prefix + key)}</Key></Object>`).join("");
      const body = Buffer.from(`<Delete><Quiet>true</Quiet>${objects}</Delete>`);
      const headers = {
        "content-md5": createHash("md5").update(body).digest("base64"),
        "content-type": "application/xml",
      };
      const what = `delete ${some.length} objects`;
      const request = { method: "POST", path: this.#bucket, query: "delete=", headers, body };
      const { bytes } = await this.#request(what, request);
      const [error] = elements(bytes.toString("utf8"), "Error");
      if (error !== undefined) throw failure(this.place, what, new S3Error(200, error));
    }
  }

  async #put(key: string, body: ObjectBody, size: number, headers: Record<string, string> = {}): Promise<void> {
    // The file is reopened for each attempt: a partially sent stream cannot be repeated.
    const sent = body instanceof Uint8Array ? body : createReadStream(body.file);
    const response = await this.#send({
      method: "PUT",
      path: this.#path(key),
      headers: { "content-length": String(size), ...headers },
      body: sent,
    });
    await buffer(response);
  }

  async #putIfAbsent(key: string, body: ObjectBody): Promise<boolean> {
    try {
      // Not retried: a second attempt could not tell its own first one from another writer's.
      await this.#put(key, body, await sizeOf(body), { "if-none-match": "*" });
      return true;
    } catch (error) {
      if (statusOf(error) === 412 || statusOf(error) === 409) return false;
      throw failure(this.place, `put ${key}`, error);
    }
  }

  /** Servers that do not know the condition ignore it instead of refusing it, so a probe object is put twice. */
  async #honoursConditions(): Promise<boolean> {
    const key = `condition-probe-${process.pid}-${Math.floor(this.#clock.monotonic() * 1000)}`;
    try {
      await this.#putIfAbsent(key, Buffer.from("1"));
      return !(await this.#putIfAbsent(key, Buffer.from("2")));
    } finally {
      await buffer(await this.#send({ method: "DELETE", path: this.#path(key) }));
    }
  }

  #path(key: string): string {
    return `${this.#bucket}/${encodedPath(this.#prefix + key)}`;
  }

  /** Sends a request until it succeeds, and reads the response's whole body. */
  async #request(what: string, request: S3Request): Promise<{ headers: IncomingHttpHeaders; bytes: Buffer }> {
    return await this.#try(what, async () => {
      const response = await this.#send(request);
      return { headers: response.headers, bytes: await buffer(response) };
    });
  }

  async #send(request: S3Request): Promise<IncomingMessage> {
    const response = await this.#connection.send(request);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw new S3Error(status, (await buffer(response)).toString("utf8"));
  }

  async #try<T>(what: string, work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (statusOf(error) === 404 || statusOf(error) === 416) throw error;
        if (tries === LIMITS.tries || !mayPass(error)) throw failure(this.place, what, error);
        await this.#clock.sleep(LIMITS.delay_ms * 2 ** (tries - 1));
      }
    }
  }
}

const sizeOf = async (body: ObjectBody): Promise<number> =>
  body instanceof Uint8Array ? body.length : (await stat(body.file)).size;

const queryOf = (parameters: Record<string, string>): string =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}=${encode(value)}`)
    .join("&");

const statusOf = (error: unknown): number | undefined => (error instanceof S3Error ? error.status : undefined);

/** Whether a retry may succeed: refusals are final, missing responses and server errors are not. */
function mayPass(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined || status === 408 || status === 429 || status >= 500;
}

function failure(place: string, what: string, cause: unknown): Error {
  return new Error(`the object store ${place} could not ${what}: ${messageOf(cause)}`, { cause });
}

function unlessMissing(error: unknown): undefined {
  if (statusOf(error) === 404) return undefined;
  throw error;
}
