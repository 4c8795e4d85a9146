/** Serves static files instead of a machine. A request without a matching file goes to a machine. */
import type { StaticTable } from "../../table.ts";
import type { PendingRequest } from "../balance/pending-request.ts";
import type { RequestHead } from "../http1/head.ts";
import { Bucket, type Buckets } from "./bucket.ts";
import type { Files, Wanted } from "./files.ts";
import { LayerFiles } from "./layer-files.ts";

/** Static sites of one app, by URL prefix. */
export class Statics {
  readonly #places: readonly { prefix: string; files: Files }[];

  constructor(tables: readonly StaticTable[], buckets: Buckets) {
    this.#places = tables
      .map(({ prefix, source, index }) => ({
        prefix: prefix.replace(/\/+$/, ""),
        files:
          source.kind === "layers"
            ? new LayerFiles(source.layers, source.path)
            : new Bucket(buckets, { name: source.bucket, path: source.path, index }),
      }))
      // The longest matching prefix wins.
      .sort((a, b) => b.prefix.length - a.prefix.length);
  }

  /** Undefined when no prefix matches. */
  match(head: RequestHead): { files: Files; wanted: Wanted } | undefined {
    const { method, length, target, lines } = head;
    if (this.#places.length === 0 || length !== 0 || (method !== "GET" && method !== "HEAD")) return undefined;
    const path = plainPath(target);
    const place = path && this.#places.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
    if (!place) return undefined;
    const wanted: Wanted = {
      method,
      path: path.slice(place.prefix.length + 1),
      field: (name) => fieldOf(lines, name),
    };
    return { files: place.files, wanted };
  }
}

/** Decodes the path of a target. Undefined when it is ambiguous. */
function plainPath(target: string): string | undefined {
  const end = target.indexOf("?");
  const raw = end < 0 ? target : target.slice(0, end);
  if (/%2f|%5c|%00|\/\//i.test(raw)) return undefined;
  try {
    const path = decodeURIComponent(raw);
    return /[\0\\]|(?:^|\/)\.{1,2}(?:\/|$)/.test(path) ? undefined : path;
  } catch {
    return undefined;
  }
}

function fieldOf(lines: string, name: string): string | undefined {
  for (const line of lines.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon === name.length && line.slice(0, colon).toLowerCase() === name) return line.slice(colon + 1).trim();
  }
  return undefined;
}

/** A request that a static file may answer. */
interface PendingFile extends PendingRequest {
  /** No file matches: a machine answers. */
  noFile(): void;
}

/** Returns true when static files are tried for the request; then a method of `pending` gets the result. */
export function tryFiles(statics: Statics, head: RequestHead, pending: PendingFile): boolean {
  const match = statics.match(head);
  if (!match) return false;
  match.files.find(match.wanted).then(
    (found) => {
      if (pending.aborted) {
        if (found && "abandon" in found) found.abandon();
      } else if (!found) pending.noFile();
      else if ("abandon" in found) pending.got(undefined, found);
      else pending.refused(found);
    },
    // An unreadable file counts as missing.
    () => pending.aborted || pending.noFile(),
  );
  return true;
}
