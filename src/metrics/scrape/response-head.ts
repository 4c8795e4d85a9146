import { ScrapeFailure, tooLarge } from "./failure.ts";
import { SCRAPE_LIMITS } from "./limits.ts";

/** What a response head says about its body. */
export interface ResponseHead {
  /** Bytes of the body; undefined when it comes in chunks or ends with the connection. */
  length?: number;
  chunked: boolean;
  gzip: boolean;
  format: "prometheus" | "openmetrics" | "protobuf";
  /** Another request may follow on the connection. */
  keeps: boolean;
}

/** The head as it came, without the empty line. Undefined when it only announces another one. Throws ScrapeFailure. */
export function readHead(text: string): ResponseHead | undefined {
  const [first = "", ...lines] = text.split("\r\n");
  const [, version, said] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(first) ?? [];
  if (said === undefined) throw new ScrapeFailure("its answer is not HTTP/1.1");
  const status = Number(said);
  if (status < 200) return undefined;
  const headers = new Map<string, string>();
  for (const connection of lines) addHeader(headers, connection);
  refuse(status, headers);
  const chunked = headers.has("transfer-encoding");
  const length = chunked ? undefined : lengthOf(headers);
  const connection = headers.get("connection")?.toLowerCase() ?? (version === "0" ? "close" : "");
  return {
    ...(length === undefined ? {} : { length }),
    chunked,
    gzip: headers.get("content-encoding") === "gzip",
    format: formatOf(headers.get("content-type") ?? ""),
    // With two lengths the framing is ambiguous, so the connection is not reused.
    keeps: !connection.includes("close") && (length !== undefined || (chunked && !headers.has("content-length"))),
  };
}

function formatOf(type: string): ResponseHead["format"] {
  if (type.startsWith("application/openmetrics-text")) return "openmetrics";
  return type.startsWith("application/vnd.google.protobuf") ? "protobuf" : "prometheus";
}

function addHeader(headers: Map<string, string>, connection: string): void {
  const colon = connection.indexOf(":");
  if (colon < 1) throw new ScrapeFailure("the head of its answer has a line that is no header");
  const name = connection.slice(0, colon).toLowerCase();
  const value = connection.slice(colon + 1).trim();
  const before = headers.get(name);
  if (name === "content-length" && before !== undefined && before !== value) {
    throw new ScrapeFailure("its answer has two lengths");
  }
  headers.set(name, value);
}

/** Refuses a response before any of its body is read. */
function refuse(status: number, headers: ReadonlyMap<string, string>): void {
  if (status >= 300 && status < 400) {
    throw new ScrapeFailure(`it answered ${status}, and a redirect is not followed`);
  }
  if (status !== 200) throw new ScrapeFailure(`it answered ${status}`);
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity" && encoding !== "gzip") {
    const said = encoding.slice(0, 40);
    throw new ScrapeFailure(`it answered with content-encoding ${said}; gzip or none is understood`);
  }
  const transfer = headers.get("transfer-encoding") ?? "chunked";
  if (transfer.toLowerCase() !== "chunked") {
    throw new ScrapeFailure(`it answered with transfer-encoding ${transfer.slice(0, 40)}; chunked is understood`);
  }
}

function lengthOf(headers: ReadonlyMap<string, string>): number | undefined {
  const text = headers.get("content-length");
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text)) throw new ScrapeFailure("the length of its answer is not a number");
  // The content length is enough to refuse a response, but not trusted otherwise.
  if (Number(text) > SCRAPE_LIMITS.body_bytes) throw tooLarge();
  return Number(text);
}
