/** Header fields between the lines of HTTP/1.1 and the objects that Node's HTTP/2 wants. */
import type { IncomingHttpHeaders } from "node:http2";
import { forbiddenInTrailers } from "../http1/fields.ts";

/** Node throws on duplicates of single-value headers. Programs send them, and HTTP/1.1 passes them on. */
export const LENIENT = { strictSingleValueFields: false } as const;

/** Node throws on these too: HTTP/2 has no connection-specific headers. */
const CONNECTION_ONLY = new Set(
  "connection transfer-encoding upgrade keep-alive proxy-connection http2-settings".split(" "),
);
const isOfConnection = (name: string, value: string): boolean =>
  CONNECTION_ONLY.has(name) || (name === "te" && value !== "trailers");

type Fields = Record<string, string | string[]>;

/** A repeated name has a list of values. */
export function outgoing(pairs: Iterable<readonly [string, string]>): Fields {
  // Without a prototype: `constructor` is a name like any other.
  const headers = Object.create(null) as Fields;
  for (const [name, value] of pairs) {
    if (isOfConnection(name, value)) continue;
    const before = headers[name];
    headers[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return headers;
}

export function fieldsOf(lines: string): Fields {
  const pairs = lines.split("\r\n").flatMap((line): [string, string][] => {
    const colon = line.indexOf(":");
    return colon < 1 ? [] : [[line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]];
  });
  return outgoing(pairs);
}

/** Trailers that may be passed on, each a line with its end. */
export const trailerLines = (headers: IncomingHttpHeaders): string =>
  Object.entries(headers)
    .filter(([name]) => !name.startsWith(":") && !forbiddenInTrailers(name))
    .map(([name, value]) => `${name}: ${String(value)}\r\n`)
    .join("");
