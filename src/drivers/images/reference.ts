import { fail } from "#core/errors.ts";
import { parseImage } from "#machines/images.ts";
import { isDigest } from "./blobs.ts";

/** An image's name, taken apart, checked, and in the one form it is kept under. */
export interface Reference {
  registry: string;
  repository: string;
  tag: string | undefined;
  /** The digest that was asked for. */
  digest: string | undefined;
  /** `registry/repository:tag`, or `registry/repository@digest` without a tag. */
  name: string;
  /** As it was written. */
  given: string;
}

const REGISTRY = /^(?:\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9]+(?:[.-]+[a-zA-Z0-9]+)*)(?::\d{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const REPOSITORY_CHARS = 255;

/** Fails in words when it is no name of an image. `field` is where it was given. */
export function readReference(image: string, field = "body.config.image"): Reference {
  const { registry, repository, tag, digest } = parseImage(image.trim());
  const wrong =
    !REGISTRY.test(registry) || !REPOSITORY.test(repository) || repository.length > REPOSITORY_CHARS
      ? "is not the name of an image"
      : tag !== undefined && !TAG.test(tag)
        ? "has a tag that no image can have"
        : digest !== undefined && !isDigest(digest)
          ? "has a digest that is not sha256: and 64 hex digits"
          : undefined;
  if (wrong) {
    const problem = `${JSON.stringify(image.slice(0, 200))} ${wrong}`;
    const allowed = "[registry/]repository[:tag][@sha256:…], the repository in lower case";
    fail("invalid_request", `${field} ${problem}`, { details: [{ path: field, problem, allowed }] });
  }
  const place = `${registry}/${repository}`;
  const name = tag === undefined ? `${place}@${digest}` : `${place}:${tag}`;
  return { registry, repository, tag, digest, name, given: image };
}

/** The registry, repository and tag in words, for every error about an image. */
export function inWords({ registry, repository, tag, digest }: Reference): string {
  const which = tag === undefined ? `digest ${digest}` : `tag ${JSON.stringify(tag)}`;
  return `repository ${JSON.stringify(repository)}, ${which}, in registry ${registry}`;
}

/** The same for a program. */
export function facts({ registry, repository, tag, digest }: Reference): Record<string, unknown> {
  return {
    image: { registry, repository, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) },
  };
}
