import { fail } from "#core/errors.ts";
import type { ImageRef } from "../types.ts";

const HUB = "registry-1.docker.io";

/**
 * Parses an image name: `registry/repository:tag@digest`. A first part with a dot or a colon, or `localhost`, is a
 * registry; anything else is Docker Hub, where a bare name means `library/`.
 */
export function parseImage(image: string): Omit<ImageRef, "digest"> & { digest?: string } {
  const [name = "", digest] = image.split("@", 2);
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  const named = /[.:]/.test(first) || first === "localhost";
  const rest = named ? name.slice(slash + 1) : name;
  const colon = rest.lastIndexOf(":");
  const path = colon > rest.lastIndexOf("/") ? rest.slice(0, colon) : rest;
  const tag = path.length < rest.length ? rest.slice(path.length + 1) : undefined;
  const hub = !named || first === "docker.io" || first === "index.docker.io";
  return {
    registry: hub ? HUB : first,
    repository: hub && !path.includes("/") ? `library/${path}` : path,
    ...(tag === undefined ? (digest === undefined ? { tag: "latest" } : {}) : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

const REGISTRY = /^(?:\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9]+(?:[.-]+[a-zA-Z0-9]+)*)(?::\d{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REPOSITORY_CHARS = 255;

/** Also valid in a URL: no port above 65535, no IPv4 part above 255. */
const isRegistry = (text: string): boolean => REGISTRY.test(text) && URL.canParse(`https://${text}`);

export const isDigest = (text: string): boolean => DIGEST.test(text);

/** Refuses an invalid image name. `field` is its location in the request. */
export function checkImageName(image: string, field: string): void {
  const { registry, repository, tag, digest } = parseImage(image.trim());
  const wrong =
    !isRegistry(registry) || !REPOSITORY.test(repository) || repository.length > REPOSITORY_CHARS
      ? "is not the name of an image"
      : tag !== undefined && !TAG.test(tag)
        ? "has a tag that no image can have"
        : digest !== undefined && !isDigest(digest)
          ? "has a digest that is not sha256: and 64 hex digits"
          : undefined;
  if (!wrong) return;
  const problem = `${JSON.stringify(image.slice(0, 200))} ${wrong}`;
  const allowed = "[registry/]repository[:tag][@sha256:…], the repository in lower case";
  fail("invalid_request", `${field} ${problem}`, { details: [{ path: field, problem, allowed }] });
}

/** The image pinned to a digest, as `config.image` accepts it: `name:tag@sha256:…`, the name as written. */
export function pinnedReference(image: string, { tag, digest }: Pick<ImageRef, "tag" | "digest">): string {
  const [name = ""] = image.trim().split("@", 1);
  const tagged = name.lastIndexOf(":") > name.lastIndexOf("/");
  return `${name}${tagged || tag === undefined ? "" : `:${tag}`}@${digest}`;
}
