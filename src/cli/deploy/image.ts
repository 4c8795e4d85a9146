/** Pins the image of a deploy to a digest, so that a release runs the same image when its tag moves. */
import type { Group } from "../app-file/groups.ts";
import type { Context } from "../verb.ts";
import type { Definition } from "./definition.ts";
import { type ImageHealthcheck, withImageCheck } from "./image-check.ts";

const DIGEST_CHARS = 12;

/**
 * Adds the digests that the images resolve to now; existing digests stay. With `image_checks` groups without checks get that
 * of their image's HEALTHCHECK.
 */
export async function pinned(
  { client, say }: Context,
  app_name: string,
  definition: Definition,
  { image_checks = false }: { image_checks?: boolean | undefined } = {},
): Promise<Definition> {
  const known = new Map<string, { digest: string; reference: string; healthcheck?: ImageHealthcheck | undefined }>();
  const resolved = async (image: string) => {
    const found =
      known.get(image) ??
      (await client.call("GET /v1/apps/:app_name/images/resolve", { params: { app_name }, query: { image } }));
    known.set(image, found);
    return found;
  };
  const groups: Group[] = [];
  for (const group of definition.groups) {
    const { image } = group.config;
    const given = image === definition.image ? (definition.reference ?? image) : image;
    const { reference, healthcheck } = await resolved(given);
    const config = { ...group.config, image: reference };
    groups.push({ ...group, config: image_checks ? withImageCheck(config, group.name, healthcheck, say) : config });
  }
  const { digest, reference } = await resolved(definition.reference ?? definition.image);
  return { ...definition, groups, digest, reference };
}

/** `sha256:0123456789ab…` in short form. */
export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, "").slice(0, DIGEST_CHARS);

/** `web:1@sha256:0123456789ab…` as `web:1 (0123456789ab)`. */
export function referenceText(reference: string): string {
  const [image = "", digest] = reference.split("@");
  return imageText(digest === undefined ? { image } : { image, digest });
}

/** `web:1 (0123456789ab)`. */
export const imageText = ({ image, digest }: Pick<Definition, "image" | "digest">): string =>
  digest === undefined ? image : `${image} (${shortDigest(digest)})`;
