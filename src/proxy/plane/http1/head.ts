/**
 * Parses heads of HTTP/1 messages strictly. Ambiguous input is refused, not interpreted; what passes is serialized
 * again, so the machine sees only what was understood here.
 */
import { BadMessage } from "./bad-message.ts";
import { FieldReader } from "./field-reader.ts";
import { forbiddenInTrailers } from "./fields.ts";

/** Special values of a body length. */
export const CHUNKED = -1;
export const UNTIL_CLOSE = -2;

export interface RequestHead {
  method: string;
  target: string;
  /** HTTP/1.0 or HTTP/1.1. */
  minor: 0 | 1;
  /** Lower case, without the port; empty when HTTP/1.0 sent none. */
  host: string;
  /** As received. */
  authority: string;
  /** Bytes of the body, or CHUNKED. */
  length: number;
  keep_alive: boolean;
  /** The requested protocol upgrade, if any. */
  upgrade: string | undefined;
  /** Headers to pass on, each a line with its end. */
  lines: string;
  /** Headers of a trace, likewise. */
  trace_lines: string;
  /** `accept-encoding`, for compression. */
  accepts: string;
}

export interface ResponseHead {
  status: number;
  reason: string;
  /** Bytes of the body, CHUNKED or UNTIL_CLOSE. */
  length: number;
  /** Whether the connection may be reused. */
  keep_alive: boolean;
  /** The other side's keep-alive timeout, in seconds. */
  keep_s: number;
  upgrade: string | undefined;
  /** Names (lower case) and values of headers, alternating, without hop-by-hop ones. */
  fields: string[];
}

const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])\r\n/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/;
const AUTHORITY = /^(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;
const CR = 13;
const LF = 10;
const LENGTH = /^\d{1,15}$/;

/** Position of the empty line that ends a head; -1 if it is not there yet. */
export function headEnd(bytes: Buffer): number {
  const { length } = bytes;
  // Steps by four: a byte that is no line end excludes the three before it.
  for (let last = 3; last < length; ) {
    const byte = bytes[last];
    if (byte === LF) {
      if (bytes[last - 1] === CR && bytes[last - 2] === LF && bytes[last - 3] === CR) return last - 3;
      last += 2;
    } else last += byte === CR ? 1 : 4;
  }
  return -1;
}

const once = (seen: string | undefined, name: string): void => {
  if (seen !== undefined) throw new BadMessage(`there is more than one ${name} header`);
};

/** Parses a request head: the first `length` bytes, including the empty line. */
export function readRequest(bytes: Buffer, length: number): RequestHead {
  const text = bytes.toString("latin1", 0, length);
  const start = REQUEST_LINE.exec(text);
  if (!start) throw new BadMessage("the request line is not `METHOD /path HTTP/1.1`");
  const [first, method = "", target = "", minor] = start;
  checkTarget(method, target);
  const read = new RequestFields();
  const fields = new FieldReader(bytes, text, first.length);
  while (fields.next()) read.take(fields);
  return read.head(method, target, minor === "1" ? 1 : 0);
}

function checkTarget(method: string, target: string): void {
  if (method === "CONNECT") throw new BadMessage("CONNECT is not served here", 405);
  if (target.charCodeAt(0) !== 47 && !(target === "*" && method === "OPTIONS")) {
    throw new BadMessage("the request target must be a path");
  }
  if (target.includes("\\") || target.includes("#")) {
    throw new BadMessage("the request target may not hold a backslash or a #");
  }
}

/** The headers that decide message length and connection reuse. */
class Framing {
  length: string | undefined;
  encoding: string | undefined;
  /** Options of the `Connection` header, in lower case. */
  options = "";

  take(role: "length" | "encoding" | "connection", value: string): void {
    switch (role) {
      case "length":
        once(this.length, "Content-Length");
        this.length = value;
        return;
      case "encoding":
        once(this.encoding, "Transfer-Encoding");
        this.encoding = value;
        return;
      case "connection":
        this.options += `,${value.toLowerCase()}`;
        return;
    }
  }

  goesOn(minor: 0 | 1): boolean {
    return minor === 1 ? !hasOption(this.options, "close") : hasOption(this.options, "keep-alive");
  }
}

/** Collects the headers of one request. */
class RequestFields {
  readonly #framing = new Framing();
  #lines = "";
  #trace_lines = "";
  #accepts = "";
  #host: string | undefined;
  #upgrade: string | undefined;

  take({ name, value, line }: FieldReader): void {
    switch (name.role) {
      case undefined:
        if (name.text === "accept-encoding") this.#accepts = value;
        this.#lines += line;
        return;
      case "host":
        once(this.#host, "Host");
        this.#host = value;
        return;
      case "length":
      case "encoding":
      case "connection":
        this.#framing.take(name.role, value);
        return;
      case "upgrade":
        once(this.#upgrade, "Upgrade");
        this.#upgrade = value;
        return;
      case "te":
        if (/\btrailers\b/i.test(value)) this.#lines += "te: trailers\r\n";
        return;
      case "expect":
        this.#lines += line;
        return;
      case "trace":
        this.#trace_lines += line;
        return;
      case "hop":
      case "ours":
        return;
    }
  }

  head(method: string, target: string, minor: 0 | 1): RequestHead {
    const authority = this.#host ?? "";
    if (this.#host === undefined && minor === 1) throw new BadMessage("there is no Host header");
    if (authority !== "" && !AUTHORITY.test(authority)) throw new BadMessage("the Host header is not a host name");
    const length = this.#length(minor);
    const { options } = this.#framing;
    const upgrade = this.#upgrade && minor === 1 && length === 0 && hasOption(options, "upgrade") ? this.#upgrade : "";
    return {
      method,
      target,
      minor,
      host: hostName(authority),
      authority,
      length,
      keep_alive: this.#framing.goesOn(minor),
      // h2c is hop-by-hop: never passed on.
      upgrade: upgrade === "" || /\bh2c\b/i.test(upgrade) ? undefined : upgrade,
      lines: withoutNamed(this.#lines, options),
      trace_lines: withoutNamed(this.#trace_lines, options),
      accepts: this.#accepts,
    };
  }

  #length(minor: 0 | 1): number {
    const { length, encoding } = this.#framing;
    if (encoding !== undefined) {
      if (length !== undefined) throw new BadMessage("there are both Content-Length and Transfer-Encoding");
      if (minor === 0) throw new BadMessage("Transfer-Encoding does not belong in HTTP/1.0");
      if (encoding !== "chunked") throw new BadMessage("Transfer-Encoding may only be exactly `chunked`", 501);
      return CHUNKED;
    }
    if (length === undefined) return 0;
    if (!LENGTH.test(length)) throw new BadMessage("Content-Length is not a number");
    return Number(length);
  }
}

const hasOption = (options: string, name: string): boolean =>
  options.includes(name) && options.split(",").some((option) => option.trim() === name);

/** Removes the headers that `Connection` lists as hop-by-hop. */
function withoutNamed(lines: string, options: string): string {
  if (options === "" || options === ",keep-alive") return lines;
  const named = options
    .split(",")
    .map((option) => option.trim())
    .filter((option) => option !== "" && option !== "close" && option !== "keep-alive" && option !== "upgrade");
  if (named.length === 0) return lines;
  return lines
    .split("\r\n")
    .filter((line) => line !== "" && !named.includes(line.slice(0, line.indexOf(":")).toLowerCase()))
    .map((line) => `${line}\r\n`)
    .join("");
}

/** The host of `name:port`, in lower case and without a final dot. */
export function hostName(authority: string): string {
  const colon = authority.startsWith("[") ? authority.indexOf("]") + 1 : authority.indexOf(":");
  const name = colon > 0 ? authority.slice(0, colon) : authority;
  return (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();
}

/** Parses a response head. `method` is that of the request: a response to HEAD has no body. */
export function readResponse(bytes: Buffer, length: number, method: string): ResponseHead {
  const text = bytes.toString("latin1", 0, length);
  const start = STATUS_LINE.exec(text);
  if (!start) throw new BadMessage("the answer does not begin with a status line", 502);
  const [first, minor, status, reason = ""] = start;
  const read = new ResponseFields();
  const fields = new FieldReader(bytes, text, first.length);
  while (fields.next()) read.take(fields);
  return read.head(minor === "1" ? 1 : 0, Number(status), reason, method);
}

/** Collects the headers of one response. */
class ResponseFields {
  readonly #framing = new Framing();
  readonly #fields: string[] = [];
  #upgrade: string | undefined;
  #keep_s = Number.POSITIVE_INFINITY;

  take({ name, value }: FieldReader): void {
    switch (name.answer_role) {
      case undefined:
        this.#fields.push(name.text, value);
        return;
      case "length":
      case "encoding":
      case "connection":
        this.#framing.take(name.answer_role, value);
        return;
      case "upgrade":
        this.#upgrade = value;
        return;
      case "keep-alive":
        this.#keep_s = Number(/timeout=(\d{1,6})/.exec(value)?.[1] ?? this.#keep_s);
        return;
      case "hop":
        return;
    }
  }

  head(minor: 0 | 1, status: number, reason: string, method: string): ResponseHead {
    const { length: said, encoding } = this.#framing;
    const length = answerLength(status, method, said, encoding?.toLowerCase());
    // A response to HEAD states the length that the body would have.
    if (said !== undefined && length === 0 && status !== 204 && status >= 200)
      this.#fields.push("content-length", said);
    return {
      status,
      reason,
      length,
      keep_alive: this.#framing.goesOn(minor) && length !== UNTIL_CLOSE,
      keep_s: this.#keep_s,
      upgrade: this.#upgrade,
      fields: this.#fields,
    };
  }
}

function answerLength(
  status: number,
  method: string,
  length: string | undefined,
  encoding: string | undefined,
): number {
  if (length !== undefined && !LENGTH.test(length)) throw new BadMessage("Content-Length is not a number", 502);
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) return 0;
  if (encoding !== undefined) {
    if (length !== undefined) throw new BadMessage("there are both Content-Length and Transfer-Encoding", 502);
    if (encoding !== "chunked") throw new BadMessage("Transfer-Encoding is not `chunked`", 502);
    return CHUNKED;
  }
  return length === undefined ? UNTIL_CLOSE : Number(length);
}

/** Trailers that may be passed on, each a line with its end. */
export function readTrailers(lines: string): string {
  const text = `${lines}\r\n`;
  let allowed = "";
  const fields = new FieldReader(Buffer.from(text, "latin1"), text, 0);
  while (fields.next()) if (!forbiddenInTrailers(fields.name.text)) allowed += fields.line;
  return allowed;
}
