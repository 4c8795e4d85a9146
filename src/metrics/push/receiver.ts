/** Receives pushed samples: remote write, VictoriaMetrics' imports, OTLP. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { type Caller, type Guard, orgOf } from "#http/access.ts";
import type { Exchange } from "#http/route.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import { answering } from "../failures.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import { BadWire } from "../tsdb/ingest/protobuf.ts";
import { readBody, unpacked } from "./body.ts";
import { decodeJsonLines } from "./json-lines.ts";
import { PUSH_LIMITS } from "./limits.ts";
import { type OtlpRequest, samplesOfOtlp } from "./otlp.ts";
import { decodeOtlp } from "./otlp-wire.ts";
import { decodeRemoteWrite1 } from "./remote-write1.ts";
import { type Decoded, decodeRemoteWrite2 } from "./remote-write2.ts";
import type { OwnLabels, PushedSamples } from "./samples.ts";

export interface PushParts {
  engine(): Pick<MetricsEngine, "append" | "importRemoteWrite" | "importText">;
  guard: Pick<Guard, "admit">;
  clock: Clock;
}

/** The response to a sender. */
interface PushAnswer {
  status: 200 | 204;
  type?: string;
  body?: Uint8Array | string;
  headers?: Record<string, string>;
}

interface Pushed {
  org_id: string;
  body: Buffer;
  type: string;
  encoding: string;
  query: URLSearchParams;
  /** Labels of the machine that pushes, if one does. */
  own: OwnLabels;
  /** The body without its Content-Encoding. */
  unpack(): Promise<Uint8Array>;
}

const V2 = /proto\s*=\s*io\.prometheus\.write\.v2\.Request/;

export class PushReceiver {
  readonly #parts: PushParts;
  /** Bytes being received or stored, by organization. */
  readonly #busy = new Map<string, number>();
  #all = 0;

  constructor(parts: PushParts) {
    this.#parts = parts;
  }

  /** Reads the body and answers: the work of one route. */
  relay(work: (pushed: Pushed) => Promise<PushAnswer>): (exchange: Exchange) => Promise<void> {
    return async ({ request, response, caller, request_id, takeOver, whileAllowed }) => {
      const url = new URL(request.url ?? "/", "http://push");
      const org_slug = decodeURIComponent(url.pathname.split("/")[2] ?? "");
      const admit = (again: Caller) => this.#parts.guard.admit(again, "write org", { org_slug });
      const { id: org_id } = orgOf(await admit(caller));
      const allowed = whileAllowed(admit);
      const answer = await this.#counted(org_id, request, async (count) => {
        const body = await readBody(request, this.#parts.clock, allowed);
        const { "content-type": type = "", "content-encoding": encoding = "" } = request.headers;
        const unpack = async (): Promise<Uint8Array> => {
          const bytes = await unpacked(body, encoding);
          if (bytes !== body) count(bytes.length);
          return bytes;
        };
        return await answering(() =>
          work({ org_id, body, type, encoding, query: url.searchParams, own: caller.series_labels, unpack }),
        );
      });
      takeOver();
      respond(response, request_id, answer);
    };
  }

  /**
   * Counts the body while it is held, and what it is unpacked to. One without a length counts as the longest; few bytes
   * unpack to many, so these are counted as soon as they are there.
   */
  async #counted<T>(
    org_id: string,
    { headers }: IncomingMessage,
    work: (count: (bytes: number) => void) => Promise<T>,
  ): Promise<T> {
    let counted = 0;
    const count = (bytes: number): void => {
      this.#count(org_id, bytes);
      counted += bytes;
    };
    try {
      count(Math.min(Number(headers["content-length"] ?? PUSH_LIMITS.push_bytes), PUSH_LIMITS.push_bytes));
      return await work(count);
    } catch (thrown) {
      if (thrown instanceof BadWire) throw new ApiError("invalid_request", thrown.message, { cause: thrown });
      throw thrown;
    } finally {
      this.#all -= counted;
      const left = (this.#busy.get(org_id) ?? 0) - counted;
      if (left > 0) this.#busy.set(org_id, left);
      else this.#busy.delete(org_id);
    }
  }

  #count(org_id: string, bytes: number): void {
    const own = (this.#busy.get(org_id) ?? 0) + bytes;
    if (own > PUSH_LIMITS.org_push_bytes)
      fail("rate_limited", "the organization pushes more at once than the limit org_push_bytes allows; send it again", {
        retry_after_s: 1,
      });
    if (this.#all + bytes > PUSH_LIMITS.all_push_bytes)
      fail("overloaded", "more is pushed at once than the limit all_push_bytes allows; send it again", {
        retry_after_s: 1,
      });
    this.#busy.set(org_id, own);
    this.#all += bytes;
  }

  readonly remoteWrite = this.relay(async ({ org_id, body, type, encoding, own, unpack }) => {
    if (V2.test(type)) return await this.#written(org_id, decodeRemoteWrite2(await unpack(), own));
    // Senders of the first version always use snappy, and the engine unpacks it.
    const snappy = encoding === "" || encoding === "snappy" ? body : undefined;
    if (!snappy)
      fail("unsupported_media_type", `remote write 1.0 has Content-Encoding snappy, not ${encoding.slice(0, 40)}`);
    if (own) return await this.#written(org_id, decodeRemoteWrite1(await unpacked(snappy, "snappy"), own));
    const result = await this.#parts.engine().importRemoteWrite(org_id, snappy);
    refuseDropped(result);
    return { status: 204, headers: written(result.samples) };
  });

  async #written(org_id: string, { samples, left_out }: Decoded): Promise<PushAnswer> {
    const result = await this.#append(org_id, samples);
    if (left_out > 0 && samples.count === 0)
      fail("invalid_request", "exemplars are not stored", { headers: written(0) });
    return { status: 204, headers: written(result.samples, samples.histograms) };
  }

  readonly importJson = this.relay(async ({ org_id, own, unpack }) => {
    await this.#append(org_id, decodeJsonLines(await unpack(), own));
    return { status: 204 };
  });

  readonly importPrometheus = this.relay(async ({ org_id, query, own, unpack }) => {
    const given = Number(query.get("timestamp") ?? Number.NaN);
    const timestamp_ms = Number.isSafeInteger(given) ? given : this.#parts.clock.now();
    const text = Uint8Array.from(await unpack());
    const labels = Object.entries(own ?? {}).flat();
    const result = await this.#parts.engine().importText(org_id, text, { format: "prometheus", timestamp_ms, labels });
    refuseDropped(result);
    return { status: 204 };
  });

  readonly otlp = this.relay(async ({ org_id, type, own, unpack }) => {
    const bytes = await unpack();
    const isJson = /^application\/json\b/i.test(type);
    if (!isJson && !/^application\/x-protobuf\b/i.test(type))
      fail("unsupported_media_type", "OTLP metrics are application/x-protobuf or application/json");
    const { samples, left_out } = samplesOfOtlp(isJson ? parsedJson(bytes) : decodeOtlp(bytes), own);
    await this.#append(org_id, samples);
    return otlpAnswer(isJson, left_out);
  });

  async #append(org_id: string, samples: PushedSamples): Promise<ImportResult> {
    if (samples.count === 0) return { samples: 0, dropped: 0, problems: [], problem_count: 0 };
    const result = await this.#parts.engine().append(org_id, samples.build());
    refuseDropped(result);
    return result;
  }
}

const written = (stored: number, histograms = 0): Record<string, string> => ({
  "X-Prometheus-Remote-Write-Samples-Written": String(stored - histograms),
  "X-Prometheus-Remote-Write-Histograms-Written": String(histograms),
  "X-Prometheus-Remote-Write-Exemplars-Written": "0",
});

/** The others are stored. Not to be sent again: a second time would give the same. */
function refuseDropped({ samples, dropped, problems, problem_count }: ImportResult): void {
  const [first] = problems;
  if (dropped === 0 && problem_count === 0) return;
  const why = first
    ? `${first.problem}${first.line === undefined ? "" : ` (line ${first.line})`}`
    : "they are too old, too far ahead, or beyond a limit of series";
  fail("invalid_request", `${samples} samples were stored, ${dropped || problem_count} were not: ${why}`, {
    hint: "GET /prometheus/<org>/api/v1/status/tsdb counts what was dropped, by reason",
    headers: written(samples),
  });
}

function parsedJson(bytes: Uint8Array): OtlpRequest {
  try {
    const parsed = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8")) as unknown;
    if (typeof parsed === "object" && parsed !== null) return parsed as OtlpRequest;
  } catch {
    // Said below.
  }
  return fail("malformed_json", "the body is no OTLP request in JSON");
}

/** `partial_success` counts what was left out; the text is the same in both encodings. */
function otlpAnswer(isJson: boolean, left_out: readonly string[]): PushAnswer {
  const text = `not stored: ${[...new Set(left_out)].slice(0, 10).join(", ")} (deltas and exponential histograms of a scale below -4)`;
  if (isJson) {
    const partialSuccess = { rejectedDataPoints: String(left_out.length), errorMessage: text };
    return {
      status: 200,
      type: "application/json",
      body: JSON.stringify(left_out.length > 0 ? { partialSuccess } : {}),
    };
  }
  const message = Buffer.from(text);
  const inner = Buffer.concat([
    Buffer.from([0x08]),
    varint(left_out.length),
    Buffer.from([0x12]),
    varint(message.length),
    message,
  ]);
  const body =
    left_out.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a]), varint(inner.length), inner]);
  return { status: 200, type: "application/x-protobuf", body };
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) + 128);
  }
}

function respond(response: ServerResponse, request_id: string, { status, type, body, headers }: PushAnswer): void {
  response.writeHead(status, {
    "svc-request-id": request_id,
    "x-content-type-options": "nosniff",
    ...(type === undefined ? {} : { "content-type": type }),
    ...headers,
  });
  response.end(body);
}
