/** Headers that the proxy adds to forwarded messages, the same for every version of HTTP. */
import type { PortOptions } from "../table.ts";
import type { Refusal } from "./balance/pending-request.ts";
import { BadMessage } from "./http1/bad-message.ts";
import { CHUNKED, type RequestHead, type ResponseHead } from "./http1/head.ts";

/** A client's connection. */
export interface Peer {
  address: string;
  port: number;
  /** The local address that accepted it. */
  local_address: string;
  local_port: number;
  secure: boolean;
}

/** Forwarding headers about the client, the same for all requests of a connection. */
export function peerLines(peer: Peer, region: string, via: "1.1" | "2"): string {
  return (
    `x-forwarded-for: ${peer.address}\r\nx-forwarded-proto: ${peer.secure ? "https" : "http"}\r\n` +
    `x-forwarded-port: ${peer.local_port}\r\nx-forwarded-ssl: ${peer.secure ? "on" : "off"}\r\n` +
    `svc-client-ip: ${peer.address}\r\nsvc-forwarded-port: ${peer.local_port}\r\nsvc-region: ${region}\r\n` +
    `via: ${via} svc\r\n`
  );
}

/** The request head sent to the machine. */
export function requestLines(head: RequestHead, peer_lines: string, request_id: string, more = ""): string {
  const framing =
    head.length === CHUNKED
      ? "transfer-encoding: chunked\r\n"
      : head.length > 0 || bodied(head.method)
        ? `content-length: ${head.length}\r\n`
        : "";
  const connection = head.upgrade
    ? `connection: upgrade\r\nupgrade: ${head.upgrade}\r\n`
    : endsConnection(head)
      ? "connection: close\r\n"
      : "";
  const host = head.authority === "" ? "" : `host: ${head.authority}\r\n`;
  return `${head.method} ${head.target} HTTP/1.1\r\n${host}${head.lines}${framing}${peer_lines}${more}svc-request-id: ${request_id}\r\n${connection}\r\n`;
}

const bodied = (method: string): boolean => method === "POST" || method === "PUT" || method === "PATCH";

/**
 * Some programs ignore a body where they expect none, and read it as the next request. Such a request gets a connection
 * of its own.
 */
export const endsConnection = ({ method, length }: RequestHead): boolean => length !== 0 && !bodied(method);

/** Whether the request may be sent again when the machine may have received it. */
export const repeatable = ({ method, length }: RequestHead): boolean =>
  length === 0 &&
  (method === "GET" || method === "HEAD" || method === "OPTIONS" || method === "PUT" || method === "DELETE");

const OUR_ANSWER_FIELDS = new Set(["server", "via", "svc-request-id"]);

/** Calls `each` with the response headers for the client, without framing headers. */
export function answerFields(
  head: ResponseHead,
  options: PortOptions,
  request_id: string,
  each: (name: string, value: string) => void,
): void {
  const { fields } = head;
  const replaced = options.headers.length === 0 ? undefined : new Set(options.headers.map(([name]) => name));
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (!options.pristine && OUR_ANSWER_FIELDS.has(name)) continue;
    if (replaced?.has(name)) continue;
    each(name, fields[i + 1] as string);
  }
  for (const [name, values] of options.headers) for (const value of values) each(name, value);
  if (options.pristine) return;
  if (!replaced?.has("server")) each("server", "svc");
  each("via", "1.1 svc");
  each("svc-request-id", request_id);
}

const REASONS: Record<number, string> = {
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  421: "Misdirected Request",
  431: "Request Header Fields Too Large",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** A response of the proxy itself, in the form of the platform's errors. */
export interface OwnResponse {
  status: number;
  reason: string;
  fields: [name: string, value: string][];
  body: string;
}

export function refusalResponse({ status, reason, text }: Refusal, request_id: string): OwnResponse {
  const retryable = status >= 502 && status <= 504;
  const body = `${JSON.stringify({ error: text, status: reason, retryable, request_id })}\n`;
  return {
    status,
    reason: REASONS[status] ?? "Error",
    fields: [
      ["content-type", "application/json; charset=utf-8"],
      ["cache-control", "no-store"],
      ["svc-reason", reason],
      ["svc-request-id", request_id],
      ...(status === 503 ? ([["retry-after", "1"]] as [string, string][]) : []),
    ],
    body,
  };
}

/** The error when the machine's response failed. */
export function brokenOff(problem: Error): Refusal {
  const text = `the machine broke off before it answered (${problem.message})`;
  if (!(problem instanceof BadMessage)) return { status: 502, reason: "broken_off", text };
  const said = `the machine's answer is not HTTP as it should be: ${problem.message}`;
  return { status: 502, reason: "malformed_answer", text: said };
}

export function redirectResponse(location: string, request_id: string): OwnResponse {
  return {
    status: 301,
    reason: "Moved Permanently",
    fields: [
      ["location", location],
      ["svc-request-id", request_id],
    ],
    body: "",
  };
}
