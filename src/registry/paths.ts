/** Paths and names of the OCI distribution API. */
import { fail } from "#core/errors.ts";

const COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const NAME = new RegExp(`^${COMPONENT}(?:/${COMPONENT})+$`);
const NAME_CHARS = 255;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;
const ANY_DIGEST = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/;

export type Operation =
  | { kind: "base" | "catalog" }
  | { kind: "tags" | "uploads"; name: RepositoryName }
  | { kind: "upload"; name: RepositoryName; upload_id: string }
  | { kind: "blob" | "referrers"; name: RepositoryName; digest: string }
  | { kind: "manifest"; name: RepositoryName; reference: Reference };

/** `org_slug/repository`: the first part is the organization. */
export interface RepositoryName {
  full: string;
  org_slug: string;
  repository: string;
}

export type Reference = { tag: string; digest?: never } | { digest: string; tag?: never };

/** Path patterns after the name, and their operations. */
const SHAPES: readonly [RegExp, (name: RepositoryName, last: string) => Operation][] = [
  [/^(.+)\/tags\/list$/, (name) => ({ kind: "tags", name })],
  [/^(.+)\/blobs\/uploads\/?$/, (name) => ({ kind: "uploads", name })],
  [/^(.+)\/blobs\/uploads\/([\w-]+)$/, (name, upload_id) => ({ kind: "upload", name, upload_id })],
  [/^(.+)\/blobs\/([^/]+)$/, (name, digest) => ({ kind: "blob", name, digest: readDigest(digest) })],
  [/^(.+)\/manifests\/([^/]+)$/, (name, text) => ({ kind: "manifest", name, reference: readReference(text) })],
  [/^(.+)\/referrers\/([^/]+)$/, (name, digest) => ({ kind: "referrers", name, digest: readDigest(digest) })],
];

/** Parses a path below `/v2/`. */
export function readPath(path: string): Operation {
  if (path === "" || path === "/") return { kind: "base" };
  if (path === "_catalog") return { kind: "catalog" };
  for (const [shape, make] of SHAPES) {
    const found = shape.exec(path);
    if (found) return make(readName(found[1] ?? ""), found[2] ?? "");
  }
  fail("not_found", `the registry has nothing at /v2/${path}`);
}

export function readName(full: string): RepositoryName {
  if (!NAME.test(full) || full.length > NAME_CHARS) {
    fail("name_invalid", `${JSON.stringify(full.slice(0, NAME_CHARS))} is not the name of a repository`, {
      hint: "names are ORGANIZATION/REPOSITORY in lower case, for example personal/web",
    });
  }
  const slash = full.indexOf("/");
  return { full, org_slug: full.slice(0, slash), repository: full.slice(slash + 1) };
}

export function readReference(text: string): Reference {
  if (text.includes(":")) return { digest: readDigest(text) };
  if (TAG.test(text)) return { tag: text };
  fail("manifest_invalid", `${JSON.stringify(text.slice(0, 200))} is neither a tag nor a digest`);
}

/** The digest's algorithm. */
export const algorithmOf = (digest: string): "sha256" | "sha512" =>
  digest.startsWith("sha512:") ? "sha512" : "sha256";

export function readDigest(text: string): string {
  if (DIGEST.test(text)) return text;
  const why = ANY_DIGEST.test(text) ? "digests are sha256 or sha512" : "a digest is sha256: and 64 hex digits";
  fail("digest_invalid", `${JSON.stringify(text.slice(0, 200))} cannot be used: ${why}`);
}
