/** Serves files from a bucket of an S3-compatible server. */
import type { IncomingMessage } from "node:http";
import type { Clock } from "#core/clock.ts";
import type { BucketsSetting } from "#core/proxy-settings.ts";
import { S3Connection } from "#s3/connection.ts";
import { encodedPath } from "#s3/signature.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { Refusal } from "../balance/pending-request.ts";
import { CHUNKED, type ResponseHead } from "../http1/head.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import { FileConnection, type Files, type Wanted } from "./files.ts";
import { mediaType } from "./media-types.ts";

/** The S3 server of all buckets, and its connections. */
export class Buckets {
  readonly #setting: BucketsSetting | undefined;
  readonly #connection: S3Connection | undefined;

  constructor(setting: BucketsSetting | undefined, clock: Clock) {
    this.#setting = setting;
    const bounds = { connections: PROXY_LIMITS.bucket_connections, idle_ms: PROXY_LIMITS.bucket_ms };
    this.#connection = setting && new S3Connection(setting, clock, bounds);
  }

  /** `path` begins with the bucket. Undefined when no server is configured. */
  request(method: string, path: string, headers: Record<string, string>): Promise<IncomingMessage> | undefined {
    return this.#connection?.send({ method, path, headers });
  }

  /** The platform's own bucket is not served. */
  serves(bucket: string): boolean {
    return this.#setting !== undefined && this.#setting.closed !== bucket;
  }

  close(): void {
    this.#connection?.close();
  }
}

/** Conditions that the server evaluates. If-Range is not one: then the whole file is sent. */
const ASKED = ["if-none-match", "if-modified-since", "range"] as const;
const TOLD = new Set(
  `accept-ranges cache-control content-disposition content-encoding content-language content-range content-type etag
  expires last-modified`.split(/\s+/),
);

export class Bucket implements Files {
  readonly #buckets: Buckets;
  readonly #path: string;
  readonly #index: string | undefined;
  readonly #may: boolean;

  constructor(buckets: Buckets, at: { name: string; path: string; index: string | undefined }) {
    this.#buckets = buckets;
    this.#path = [at.name, ...at.path.split("/")].filter((name) => name !== "").join("/");
    this.#index = at.index;
    this.#may = buckets.serves(at.name);
  }

  async find({ method, path, field }: Wanted): Promise<UpstreamConnection | Refusal | undefined> {
    if (!this.#may) return undefined;
    const folder = path === "" || path.endsWith("/");
    if (folder && !this.#index) return undefined;
    const key = `${this.#path}/${path}${folder ? this.#index : ""}`;
    const headers: Record<string, string> = {};
    for (const name of ASKED) {
      const value = name === "range" && field("if-range") !== undefined ? undefined : field(name);
      if (value !== undefined) headers[name] = value;
    }
    let answer: IncomingMessage | undefined;
    try {
      answer = await this.#buckets.request(method, `/${encodedPath(key)}`, headers);
    } catch (error) {
      return unreachable((error as Error).message);
    }
    return answer && judged(answer, key, method === "HEAD");
  }
}

const PASSED_ON = new Set([200, 206, 304, 416]);

function judged(answer: IncomingMessage, key: string, bodiless: boolean): UpstreamConnection | Refusal | undefined {
  const status = answer.statusCode ?? 0;
  if (PASSED_ON.has(status)) {
    const empty = bodiless || status === 304 || status === 416 || answer.headers["content-length"] === "0";
    if (empty) answer.resume();
    return new FileConnection(headOf(answer, key, empty), empty ? undefined : answer);
  }
  answer.resume();
  // Without permission to list a bucket, S3 answers 403 for missing keys.
  return status === 404 || status === 403 ? undefined : unreachable(`it answered ${status}`);
}

function headOf(answer: IncomingMessage, key: string, empty: boolean): ResponseHead {
  const { headers, statusCode: status = 502, statusMessage: reason = "" } = answer;
  const fields: string[] = [];
  for (const [name, value] of Object.entries(headers)) if (TOLD.has(name)) fields.push(name, String(value));
  const type = headers["content-type"];
  if (status < 300 && (!type || type === "binary/octet-stream")) {
    if (type) fields.splice(fields.indexOf("content-type"), 2);
    fields.push("content-type", mediaType(key));
  }
  const length = headers["content-length"];
  if (empty && length !== undefined && status < 300) fields.push("content-length", length);
  const size = empty ? 0 : length === undefined ? CHUNKED : Number(length);
  return { status, reason, length: size, keep_alive: true, keep_s: 0, upgrade: undefined, fields };
}

const unreachable = (problem: string): Refusal => ({
  status: 502,
  reason: "bucket_unreachable",
  text: `the bucket with this app's files cannot be read: ${problem}`,
});
