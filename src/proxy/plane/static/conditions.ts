/** Conditional requests and ranges (RFC 9110, sections 13 and 14), as far as files need them. */
import type { Wanted } from "./files.ts";

interface Version {
  size: number;
  modified_ms: number;
  etag: string;
}

/** Whether the client's cached copy is current. */
export function conditions({ field }: Wanted, { etag, modified_ms }: Version): "unchanged" | "send" {
  const tags = field("if-none-match");
  if (tags !== undefined) {
    const has = tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
    return has ? "unchanged" : "send";
  }
  const since = Date.parse(field("if-modified-since") ?? "");
  return Number.isNaN(since) || Math.floor(modified_ms / 1000) * 1000 > since ? "send" : "unchanged";
}

/**
 * Parses the Range header, `end` excluded. Undefined means the whole file, also for multiple ranges, which a server may
 * ignore. `none` is unsatisfiable.
 */
export function rangeOf(
  { field, method }: Wanted,
  version: Version,
): { start: number; end: number } | "none" | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field("range")?.trim() ?? "");
  if (!match || method !== "GET" || !sameVersion(field("if-range"), version)) return undefined;
  const [, first = "", last = ""] = match;
  const { size } = version;
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const bytes = Math.min(Number(last), size);
    return bytes === 0 ? "none" : { start: size - bytes, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  // A range with end before start is invalid and is ignored.
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "none" : { start, end };
}

/** If-Range: parts of different versions must not be combined, so then the whole file is sent. */
function sameVersion(if_range: string | undefined, { etag, modified_ms }: Version): boolean {
  if (if_range === undefined) return true;
  return if_range === etag || Date.parse(if_range) === Math.floor(modified_ms / 1000) * 1000;
}
