import { checkImageName, parseImage } from "#machines/runtime/images.ts";
import type { ImageRef } from "#machines/types.ts";

/** A parsed and normalized image name. */
export interface Reference {
  registry: string;
  repository: string;
  tag: string | undefined;
  /** The requested digest. */
  digest: string | undefined;
  /** `registry/repository:tag`, or `registry/repository@digest` without a tag. */
  name: string;
  /** As written by the user. */
  given: string;
}

/** Parses an image name or fails. `field` is its location in the request. */
export function readReference(image: string, field = "body.config.image"): Reference {
  checkImageName(image, field);
  const { registry, repository, tag, digest } = parseImage(image.trim());
  const place = `${registry}/${repository}`;
  const name = tag === undefined ? `${place}@${digest}` : `${place}:${tag}`;
  return { registry, repository, tag, digest, name, given: image };
}

/** Registry, repository and tag for error messages. */
export function inWords({ registry, repository, tag, digest }: Reference): string {
  const which = tag === undefined ? `digest ${digest}` : `tag ${JSON.stringify(tag)}`;
  return `repository ${JSON.stringify(repository)}, ${which}, in registry ${registry}`;
}

/** The same for the error's facts. */
export function facts({ registry, repository, tag, digest }: Reference): Record<string, unknown> {
  return {
    image: { registry, repository, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) },
  };
}

/** The reference stored with a machine. */
export function referenceOf({ registry, repository, tag, digest }: ImageRef): Reference {
  const named = tag === undefined ? "" : `:${tag}`;
  return readReference(`${registry}/${repository}${named}${digest === "" ? "" : `@${digest}`}`);
}
