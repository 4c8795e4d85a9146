/** Reads what the registry needs of a manifest: what it names, and what it is attached to. */
import { fail } from "#core/errors.ts";
import type { RegistryLimits } from "./limits.ts";
import { readDigest } from "./paths.ts";

export interface ManifestFacts {
  media_type: string;
  /** Config and layers. */
  blobs: string[];
  /** Manifests of an index. */
  manifests: string[];
  subject: string | null;
  artifact_type: string | null;
  annotations: string | null;
}

type Json = Record<string, unknown>;

const INDEX_TYPES = /^application\/vnd\.(oci\.image\.index|docker\.distribution\.manifest\.list)\./;
const OLD_TYPES = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;
const TYPE_CHARS = 255;
const MEDIA_TYPE = /^application\/vnd\.[\w.+-]{1,200}$/;
const MEDIA_TYPE_FORM = "application/vnd.…";
/** Non-distributable layers, which are not pushed. */
const FOREIGN_LAYER = /foreign|nondistributable/;

export function readManifest(
  bytes: Uint8Array,
  content_type: string | undefined,
  limits: RegistryLimits,
): ManifestFacts {
  const document = parse(bytes);
  const media_type = mediaType(document, content_type);
  if (OLD_TYPES.test(media_type) || document["schemaVersion"] !== 2)
    invalid("only schema version 2 is supported; push with a newer tool");
  const isIndex = INDEX_TYPES.test(media_type) || Array.isArray(document["manifests"]);
  const manifests = isIndex ? digests(document["manifests"], "manifests") : [];
  const config = object(document["config"]);
  const layers = isIndex ? [] : list(document["layers"] ?? document["blobs"] ?? [], "layers");
  const pushed = layers.filter((one) => !FOREIGN_LAYER.test(text(object(one)["mediaType"])));
  const blobs = isIndex ? [] : [...(config ? digests([config], "config") : []), ...digests(pushed, "layers")];
  if (blobs.length + manifests.length > limits.references)
    invalid(`a manifest names at most ${limits.references} blobs and manifests (limit references)`);
  const subject = document["subject"] === undefined ? null : (digests([document["subject"]], "subject")[0] ?? null);
  return {
    media_type,
    blobs: [...new Set(blobs)],
    manifests: [...new Set(manifests)],
    subject,
    // Per specification, an image without an artifact type uses its config's media type.
    artifact_type: typeText(document["artifactType"]) ?? (isIndex ? null : typeText(config?.["mediaType"])),
    // Those of a manifest that is attached to nothing are read from the manifest itself alone.
    annotations: subject === null ? null : annotationsText(object(document["annotations"]), limits),
  };
}

function typeText(value: unknown): string | null {
  const type = text(value) || null;
  if (type !== null && type.length > TYPE_CHARS) invalid(`an artifact type has at most ${TYPE_CHARS} characters`);
  return type;
}

/** They are listed with every referrer. */
function annotationsText(annotations: Json | undefined, { annotations_bytes }: RegistryLimits): string | null {
  const json = annotations ? JSON.stringify(annotations) : null;
  if (json !== null && Buffer.byteLength(json) > annotations_bytes)
    invalid(`its annotations have more than ${annotations_bytes} bytes (limit annotations_bytes)`);
  return json;
}

function parse(bytes: Uint8Array): Json {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString());
  } catch {
    invalid("it is not JSON");
  }
  return object(value) ?? invalid("it is not a JSON object");
}

function mediaType(document: Json, content_type: string | undefined): string {
  const own = text(document["mediaType"]);
  const sent = (content_type ?? "").split(";")[0]?.trim() ?? "";
  if (own !== "" && sent !== "" && own !== sent)
    invalid(`its mediaType is ${own.slice(0, 100)}, and the Content-Type is ${sent.slice(0, 100)}`);
  const media_type = own || sent;
  if (media_type === "") invalid("it has no media type; send Content-Type");
  // It becomes the Content-Type of an answer: never one that a browser shows.
  if (!MEDIA_TYPE.test(media_type)) invalid(`its media type is not of the form ${MEDIA_TYPE_FORM}`);
  return media_type;
}

const digests = (value: unknown, what: string): string[] =>
  list(value, what).map((one) => readDigest(text(object(one)?.["digest"])));

function list(value: unknown, what: string): unknown[] {
  return Array.isArray(value) ? value : invalid(`${what} is not a list`);
}

const object = (value: unknown): Json =>
  (value !== null && typeof value === "object" && !Array.isArray(value) ? value : undefined) as Json;
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function invalid(why: string): never {
  fail("manifest_invalid", `the manifest cannot be used: ${why}`);
}
