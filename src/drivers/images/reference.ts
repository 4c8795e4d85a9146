import { checkImageName, parseImage } from "#machines/runtime/images.ts";
import type { ImageRef } from "#machines/types.ts";

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

/** Fails in words when it is no name of an image. `field` is where it was given. */
export function readReference(image: string, field = "body.config.image"): Reference {
  checkImageName(image, field);
  const { registry, repository, tag, digest } = parseImage(image.trim());
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

/** The reference that a machine keeps of its image. */
export function referenceOf({ registry, repository, tag, digest }: ImageRef): Reference {
  const named = tag === undefined ? "" : `:${tag}`;
  return readReference(`${registry}/${repository}${named}${digest === "" ? "" : `@${digest}`}`);
}
