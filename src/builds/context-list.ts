/** Checks the list of a build context before anything of it is written to the disk. */
import { fail } from "#core/errors.ts";
import type { BuildLimits } from "./limits.ts";
import type { ContextEntry } from "./types.ts";

const PATH_CHARS = 4096;
/** Maximum length of a file name. */
const NAME_BYTES = 255;
const MODE_BITS = 0o7777;

type Kind = "file" | "link" | "folder";

/** Refuses paths that lead out of the context, come twice, or go through a file or a link. */
export function checkContext(entries: readonly ContextEntry[], dockerfile: string, limits: BuildLimits): void {
  const kinds = new Map<string, Kind>();
  for (const [index, entry] of entries.entries()) {
    const problem = problemOf(entry, limits) ?? (kinds.has(entry.path) ? "comes twice" : undefined);
    if (problem) refuse(`files[${index}] (${entry.path.slice(0, 100)}) ${problem}`);
    kinds.set(entry.path, kindOf(entry));
  }
  for (const path of kinds.keys()) checkParents(path, kinds);
  if (kinds.get(dockerfile) !== "file")
    refuse(`the build context has no file ${dockerfile}`, "name the Dockerfile with [build] dockerfile, or write one");
}

function kindOf({ sha256, link }: ContextEntry): Kind {
  if (sha256 !== undefined) return "file";
  return link === undefined ? "folder" : "link";
}

function checkParents(path: string, kinds: ReadonlyMap<string, Kind>): void {
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
    const above = path.slice(0, slash);
    const kind = kinds.get(above) ?? "folder";
    if (kind !== "folder") refuse(`${path} is below ${above}, which is a ${kind}`);
  }
}

function problemOf({ path, sha256, link, mode = 0 }: ContextEntry, limits: BuildLimits): string | undefined {
  if (path.length > PATH_CHARS) return "has a path that is too long";
  if (path.includes("\0") || link?.includes("\0")) return "holds a zero byte";
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return "is not a path inside the context";
  // All parents of an entry are checked, so the depth bounds the time.
  if (parts.length > limits.context_depth) return `is deeper than ${limits.context_depth} (limit context_depth)`;
  if (parts.some((part) => Buffer.byteLength(part) > NAME_BYTES)) return `has a name of more than ${NAME_BYTES} bytes`;
  if (sha256 !== undefined && link !== undefined) return "is both a file and a link";
  if (link !== undefined && (link === "" || link.length > PATH_CHARS)) return "is a link to nowhere";
  return mode > MODE_BITS ? "has a mode that no file has" : undefined;
}

function refuse(problem: string, hint = "send the paths of the context relative to its folder"): never {
  fail("build_refused", problem, { hint });
}
