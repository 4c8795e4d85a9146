import { openAsBlob } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { S3mini, S3ServiceError } from "s3mini";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { checkKey, type ObjectBody, type ObjectInfo, type ObjectRange, type ObjectStore } from "#core/objects.ts";

export interface S3Place {
  /** Scheme, host and bucket: `https://s3.example/bucket`. */
  endpoint: string;
  /** What all keys begin with in the bucket: empty, or a path that ends in a slash. */
  prefix: string;
  region: string;
  access_key: string;
  secret_key: string;
}

const LIMITS = {
  /** A request that has no answer by then is made again. */
  request_ms: 120_000,
  /** Then the store is said to have failed. */
  tries: 5,
  /** Before the second try; doubled before each further one. */
  delay_ms: 200,
  /** The most that a list answers at once, and that one request deletes. */
  page: 1000,
} as const;

/** Objects in a bucket of any server that speaks S3. */
export class S3Objects implements ObjectStore {
  readonly place: string;
  readonly #client: S3mini;
  readonly #prefix: string;
  readonly #clock: Clock;
  #conditional: Promise<boolean> | undefined;

  constructor({ endpoint, prefix, region, access_key, secret_key }: S3Place, clock: Clock) {
    this.place = `${endpoint}/${prefix}`;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#client = new S3mini({
      endpoint,
      region,
      accessKeyId: access_key,
      secretAccessKey: secret_key,
      requestAbortTimeout: LIMITS.request_ms,
    });
  }

  async put(key: string, body: ObjectBody, how: { if_absent?: boolean } = {}): Promise<boolean> {
    checkKey(key);
    if (!how.if_absent) {
      await this.#try(`put ${key}`, async () => {
        // From the start again at every try: a stream that was half sent cannot be.
        const data = body instanceof Uint8Array ? body : await openAsBlob(body.file);
        return await this.#client.putAnyObject(this.#prefix + key, data);
      });
      return true;
    }
    // An answer is kept; a probe that failed is made again by whoever asks next.
    this.#conditional ??= this.#honoursConditions().catch((error: unknown) => {
      this.#conditional = undefined;
      throw error;
    });
    if (!(await this.#conditional)) {
      throw new Error(`${this.place} does not honour If-None-Match, so nothing can be put there only if it is absent`);
    }
    return await this.#putIfAbsent(this.#prefix + key, body);
  }

  async get(key: string, range?: ObjectRange): Promise<Buffer | undefined> {
    checkKey(key);
    if (range?.length === 0) return (await this.head(key)) ? Buffer.alloc(0) : undefined;
    const { offset, length } = range ?? { offset: 0, length: 0 };
    return await this.#try(`get ${key}`, async () => {
      const response = await this.#client.getObjectRaw(this.#prefix + key, !range, offset, offset + length);
      return Buffer.from(await response.arrayBuffer());
    }).catch((error: unknown) => {
      // A range that begins behind the end.
      if (statusOf(error) === 416) return Buffer.alloc(0);
      return unlessMissing(error);
    });
  }

  async getFile(key: string, path: string): Promise<boolean> {
    checkKey(key);
    const fresh = `${path}.part`;
    try {
      await this.#try(`get ${key}`, async () => {
        const response = await this.#client.getObjectRaw(this.#prefix + key, true);
        const file = await open(fresh, "w");
        try {
          const body: AsyncIterable<Uint8Array> | null = response.body;
          if (body) for await (const piece of body) await file.writeFile(piece);
        } finally {
          await file.close();
        }
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
      const size = await this.#try(`look at ${key}`, () => this.#client.getContentLength(this.#prefix + key));
      return { key, size };
    } catch (error) {
      return unlessMissing(error);
    }
  }

  async list(prefix: string): Promise<ObjectInfo[]> {
    const found: ObjectInfo[] = [];
    let next: string | undefined;
    do {
      const token = next;
      const page = await this.#try(`list ${prefix}`, () =>
        this.#client.listObjectsPaged("/", this.#prefix + prefix, LIMITS.page, token),
      );
      for (const { Key, Size } of page?.objects ?? []) {
        found.push({ key: Key.slice(this.#prefix.length), size: Number(Size) });
      }
      next = page?.nextContinuationToken;
    } while (next);
    // Not every server sorts them.
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async delete(keys: readonly string[]): Promise<void> {
    keys.forEach(checkKey);
    for (let at = 0; at < keys.length; at += LIMITS.page) {
      const some = keys.slice(at, at + LIMITS.page).map((key) => this.#prefix + key);
      await this.#try(`delete ${some.length} objects`, () => this.#client.deleteObjects(some));
    }
  }

  async #putIfAbsent(key: string, body: ObjectBody): Promise<boolean> {
    const data = body instanceof Uint8Array ? body : await openAsBlob(body.file);
    // The client sends what it is given, and its type knows no header but the store's own.
    const headers = { "if-none-match": "*" } as unknown as Record<`x-amz-${string}`, string>;
    try {
      // Not tried again: a second try could not tell its own first one from someone else's.
      await this.#client.putObject(key, data, undefined, undefined, headers);
      return true;
    } catch (error) {
      if (statusOf(error) === 412 || statusOf(error) === 409) return false;
      throw failure(this.place, `put ${key}`, error);
    }
  }

  /** Servers that do not know the condition ignore it, which is worse than refusing. So one is tried out first. */
  async #honoursConditions(): Promise<boolean> {
    const key = `${this.#prefix}condition-probe-${process.pid}-${Math.floor(this.#clock.monotonic() * 1000)}`;
    try {
      await this.#putIfAbsent(key, Buffer.from("1"));
      return !(await this.#putIfAbsent(key, Buffer.from("2")));
    } finally {
      await this.#client.deleteObject(key);
    }
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

/** What the server answered, however deep the client has wrapped it. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof S3ServiceError) return error.status;
  return error instanceof Error && error.cause !== undefined ? statusOf(error.cause) : undefined;
}

/** What the server refuses it will refuse again; what it did not answer, or could not just now, is asked again. */
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
