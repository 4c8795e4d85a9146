import type { ImageRef } from "./types.ts";

const HUB = "registry-1.docker.io";

/**
 * An image's name, taken apart: `registry/repository:tag@digest`. A first part with a dot or a colon, or
 * `localhost`, is a registry; anything else is Docker Hub, where a bare name means `library/`.
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
