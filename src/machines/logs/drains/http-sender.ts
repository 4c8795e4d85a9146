/** Sends batches by HTTP: Loki, VictoriaLogs and OTLP. */
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { messageOf } from "#core/assert.ts";
import type { GuardedFetch } from "#core/guarded-agent.ts";
import { AddressRefused } from "#core/public-addresses.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import { lokiBody } from "./formats/loki.ts";
import { otlpBody, partialSuccess } from "./formats/otlp.ts";
import { VICTORIALOGS_QUERY, victoriaLogsBody } from "./formats/victorialogs.ts";
import type { DrainKind, DrainLine, DrainTarget, Outcome } from "./types.ts";

export type HttpKind = Exclude<DrainKind, "syslog">;

interface Format {
  /** Of an address without a path. */
  path: string;
  query: Record<string, string>;
  type: string;
  body(lines: readonly DrainLine[]): string | Buffer;
}

const FORMATS: Record<HttpKind, Format> = {
  loki: { path: "/loki/api/v1/push", query: {}, type: "application/json", body: lokiBody },
  victorialogs: {
    path: "/insert/jsonline",
    query: VICTORIALOGS_QUERY,
    type: "application/stream+json",
    body: victoriaLogsBody,
  },
  otlp: { path: "/v1/logs", query: {}, type: "application/x-protobuf", body: otlpBody },
};

/** Answers to a request that will always be answered so: what it contains is wrong, not where it goes. */
const REFUSALS = new Set([400, 413, 422]);
/** How much of an answer is read. */
const MOST_ANSWER_BYTES = 64 * 1024;
const REASON_CHARS = 300;

const compress = promisify(gzip);

export interface SendOptions {
  /** Connects to public addresses only. */
  guarded: boolean;
  signal: AbortSignal;
}

export async function sendByHttp(
  http: GuardedFetch,
  { kind, target }: { kind: HttpKind; target: DrainTarget },
  lines: readonly DrainLine[],
  { guarded, signal }: SendOptions,
): Promise<Outcome> {
  const { type, body } = FORMATS[kind];
  const url = requestUrl(kind, target.url);
  try {
    const init = {
      method: "POST",
      body: await compress(body(lines), { level: constants.Z_BEST_SPEED }),
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(MACHINE_LIMITS.drain_timeout_ms)]),
      headers: { "user-agent": "hangar", ...target.headers, "content-type": type, "content-encoding": "gzip" },
    } as const;
    const response = await http.fetch(url, init, { guarded });
    const answer = await beginningOf(response.body);
    if (!response.ok) return refusal(response.status, answer, response.headers.get("retry-after"));
    return taken(kind, answer);
  } catch (thrown) {
    return { taken: false, reason: reasonOf(thrown, url.host) };
  }
}

export function requestUrl(kind: HttpKind, address: string): URL {
  const { path, query } = FORMATS[kind];
  const url = new URL(address);
  if (url.pathname === "/") url.pathname = path;
  for (const [name, value] of Object.entries(query)) if (!url.searchParams.has(name)) url.searchParams.set(name, value);
  return url;
}

function taken(kind: HttpKind, answer: Buffer): Outcome {
  if (kind !== "otlp") return { taken: true, refused: 0 };
  try {
    return { taken: true, ...partialSuccess(answer) };
  } catch {
    // It took the request; what it says of it is not in the format that was asked for.
    return { taken: true, refused: 0 };
  }
}

function refusal(status: number, answer: Buffer, retry_after: string | null): Outcome {
  // Protobuf answers are not shown.
  const said = answer
    .toString()
    .replace(/\s+/g, " ")
    .replace(/[^\x20-\x7e]/g, "")
    .trim();
  const reason = `the answer was ${status}${said === "" ? "" : `: ${said}`}`.slice(0, REASON_CHARS);
  if (REFUSALS.has(status)) return { taken: false, reason, refuses: true };
  const seconds = Number(retry_after);
  return seconds > 0 ? { taken: false, reason, retry_after_ms: seconds * 1000 } : { taken: false, reason };
}

async function beginningOf(body: AsyncIterable<Uint8Array> | null): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    parts.push(part);
    size += part.length;
    if (size > MOST_ANSWER_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, MOST_ANSWER_BYTES);
}

export function reasonOf(thrown: unknown, place: string): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  const refused = [thrown, cause].find((one) => one instanceof AddressRefused);
  if (refused instanceof AddressRefused)
    return `${refused.message}; the operator can allow it: HANGAR_WEBHOOK_ALLOW_PRIVATE=${place}`.slice(
      0,
      REASON_CHARS,
    );
  return `${messageOf(thrown)}${cause instanceof Error ? `: ${cause.message}` : ""}`.slice(0, REASON_CHARS);
}
