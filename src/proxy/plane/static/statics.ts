/** Files that are served here instead of by a machine. What is not there is the machine's to answer. */
import type { StaticTable } from "../../table.ts";
import type { PendingRequest } from "../balance/pending-request.ts";
import type { RequestHead } from "../http1/head.ts";
import { Bucket, type Buckets } from "./bucket.ts";
import type { Files, Wanted } from "./files.ts";
import { LayerFiles } from "./layer-files.ts";

/** All files of one app, by the beginning of their addresses. */
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
      // Of two that fit the longer one says more.
      .sort((a, b) => b.prefix.length - a.prefix.length);
  }

  /** Undefined when the address is none of theirs. */
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

/** The path of a target, decoded. Undefined when programs could take it for another one. */
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

/** Somebody whose request a file may answer. */
interface PendingFile extends PendingRequest {
  /** The files have nothing for it: a machine is to answer. */
  noFile(): void;
}

/** True when files are looked at for the request; then `waiter` is told what came of it. */
export function tryFiles(statics: Statics, head: RequestHead, pending: PendingFile): boolean {
  const match = statics.match(head);
  if (!match) return false;
  match.files.find(match.wanted).then(
    (found) => {
      if (pending.gone) {
        if (found && "abandon" in found) found.abandon();
      } else if (!found) pending.noFile();
      else if ("abandon" in found) pending.got(undefined, found);
      else pending.refused(found);
    },
    // A file that cannot be read is none.
    () => pending.gone || pending.noFile(),
  );
  return true;
}
