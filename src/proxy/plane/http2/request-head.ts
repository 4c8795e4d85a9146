import type { IncomingHttpHeaders } from "node:http2";
import { BadMessage } from "../http1/bad-message.ts";
import { roleOf } from "../http1/fields.ts";
import { CHUNKED, hostName, type RequestHead } from "../http1/head.ts";

/** Converts an HTTP/2 request to HTTP/1.1 terms, so that the same rules apply. */
export function requestHead(headers: IncomingHttpHeaders, complete: boolean): RequestHead {
  const method = String(headers[":method"] ?? "");
  const target = String(headers[":path"] ?? "");
  const authority = String(headers[":authority"] ?? headers.host ?? "");
  if (!/^[A-Z]{1,32}$/.test(method) || method === "CONNECT") throw new BadMessage("the method is not served here", 405);
  if (!/^\/[\x21-\x7e]*$/.test(target) || /[\\#]/.test(target))
    throw new BadMessage("the request target must be a path");
  if (!/^[\w.:[\]-]{0,300}$/.test(authority)) throw new BadMessage("the authority is not a host name");
  const size = headers["content-length"];
  const fields = Object.entries(headers);
  const linesOf = (all: typeof fields): string => all.map(([name, value]) => passedOn(name, value)).join("");
  return {
    method,
    target,
    minor: 1,
    host: hostName(authority),
    authority,
    length: complete ? 0 : size === undefined ? CHUNKED : Number(size),
    keep_alive: true,
    upgrade: undefined,
    lines: linesOf(fields.filter(([name]) => !isTrace(name))),
    trace_lines: linesOf(fields.filter(([name]) => isTrace(name))),
    accepts: String(headers["accept-encoding"] ?? ""),
  };
}

const isTrace = (name: string): boolean => roleOf(name) === "trace";

/** The lines of one header, or nothing when it is not passed on. */
function passedOn(name: string, value: string | string[] | undefined): string {
  if (name.startsWith(":") || value === undefined) return "";
  const role = roleOf(name);
  if (role === "te") return "te: trailers\r\n";
  if (role !== undefined && role !== "expect" && role !== "trace") return "";
  const values = Array.isArray(value) ? value : [value];
  if (values.some((one) => /[^\t\x20-\x7e\x80-\xff]/.test(one))) {
    throw new BadMessage(`the field ${name} holds what no field may`);
  }
  return values.map((one) => `${name}: ${one}\r\n`).join("");
}
