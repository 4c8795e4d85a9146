/**
 * Parses manifests, indexes and configs, validating every field, because they come from untrusted sources. Both
 * formats, OCI and Docker's schema 2, have the same fields.
 */
import type { ImageConfig, ImageHealthcheck } from "#machines/runtime/image-source.ts";
import { isDigest } from "#machines/runtime/images.ts";
import type { ImageLimits } from "./limits.ts";
import { refuseImage } from "./refusal.ts";

export const MEDIA = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
  docker_list: "application/vnd.docker.distribution.manifest.list.v2+json",
  docker_manifest: "application/vnd.docker.distribution.manifest.v2+json",
} as const;

/** The Accept header of manifest requests. */
export const ACCEPT = [MEDIA.manifest, MEDIA.index, MEDIA.docker_manifest, MEDIA.docker_list].join(", ");

export interface Descriptor {
  digest: string;
  size: number;
  media_type: string;
  platform: { os: string; architecture: string; variant: string } | undefined;
  /** `org.opencontainers.image.ref.name` */
  ref_name: string | undefined;
}

export interface Manifest {
  config: Descriptor;
  layers: Descriptor[];
}

export interface ImageDocument {
  os: string;
  architecture: string;
  /** SHA-256 of each layer's uncompressed tar, lowest first. */
  diff_ids: string[];
  labels: Record<string, string>;
  config: ImageConfig;
  exposed_ports: string[];
}

type Json = Record<string, unknown>;

export function parseDocument(bytes: Uint8Array, what: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString());
  } catch (thrown) {
    refuseImage(`${what} is not JSON`, { cause: thrown });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) refuseImage(`${what} is not a JSON object`);
  return value as Json;
}

/** An index lists manifests by platform; a manifest lists layers. */
export const isIndex = (document: Json): boolean => Array.isArray(document["manifests"]);

export function readIndex(document: Json, what: string): Descriptor[] {
  return list(document["manifests"], `${what}: manifests`).map((one) => descriptor(one, `${what}: a manifest`));
}

export function readManifest(document: Json, limits: ImageLimits): Manifest {
  if (document["schemaVersion"] === 1)
    refuseImage("the image is of the old kind (schema 1)", { hint: "push it again with a newer tool" });
  const config = descriptor(document["config"], "the manifest: config");
  const layers = list(document["layers"], "the manifest: layers").map((one) =>
    descriptor(one, "the manifest: a layer"),
  );
  if (layers.length > limits.layers)
    refuseImage(`the image has ${layers.length} layers (limit layers is ${limits.layers})`);
  const large = layers.find(({ size }) => size > limits.layer_bytes);
  if (large) refuseImage(`a layer has ${large.size} bytes (limit layer_bytes is ${limits.layer_bytes})`);
  const all = layers.reduce((sum, { size }) => sum + size, 0);
  if (all > limits.image_bytes) refuseImage(`the image has ${all} bytes (limit image_bytes is ${limits.image_bytes})`);
  const foreign = layers.find(({ media_type }) => /foreign|nondistributable|encrypted/.test(media_type));
  if (foreign) refuseImage(`a layer is of the kind ${foreign.media_type}, which cannot be used here`);
  return { config, layers };
}

export function readConfig(document: Json, layers: number): ImageDocument {
  const rootfs = object(document["rootfs"]);
  const diff_ids = list(rootfs["diff_ids"] ?? [], "the config: diff_ids").map(String);
  if (diff_ids.length !== layers || !diff_ids.every(isDigest))
    refuseImage(`the image's config names ${diff_ids.length} layers and its manifest ${layers}`);
  const own = object(document["config"]);
  return {
    os: text(document["os"]) || "linux",
    architecture: text(document["architecture"]),
    diff_ids,
    labels: texts(own["Labels"]),
    exposed_ports: Object.keys(object(own["ExposedPorts"])).slice(0, 100),
    config: {
      entrypoint: strings(own["Entrypoint"]),
      cmd: strings(own["Cmd"]),
      env: environment(own["Env"]),
      user: text(own["User"]),
      working_dir: text(own["WorkingDir"]),
      ...(text(own["StopSignal"]) === "" ? {} : { stop_signal: text(own["StopSignal"]) }),
      ...healthcheck(object(own["Healthcheck"])),
    },
  };
}

/** The architecture of this host, in OCI terms. */
export const ARCHITECTURE = ({ x64: "amd64", ia32: "386" } as Record<string, string>)[process.arch] ?? process.arch;

/** The manifest of an index that matches this host. */
export function choosePlatform(manifests: readonly Descriptor[], what: string): Descriptor {
  const fits = manifests.filter(
    ({ platform }) => platform && platform.os === "linux" && platform.architecture === ARCHITECTURE,
  );
  // Prefers no variant, or arm64's only one; variants of amd64 require newer processors.
  const best = fits.find(({ platform }) => platform?.variant === "" || platform?.variant === "v8") ?? fits[0];
  if (best) return best;
  const [only] = manifests;
  if (manifests.length === 1 && only && !only.platform) return only;
  const there = manifests.map(({ platform }) => (platform ? `${platform.os}/${platform.architecture}` : "unknown"));
  refuseImage(`${what} is not for linux/${ARCHITECTURE}; it is for ${[...new Set(there)].join(", ") || "nothing"}`, {
    hint: `push it for linux/${ARCHITECTURE} too`,
  });
}

export function checkArchitecture({ os, architecture }: ImageDocument, what: string): void {
  if (os === "linux" && (architecture === ARCHITECTURE || architecture === "")) return;
  refuseImage(`${what} is for ${os}/${architecture}, and this box is linux/${ARCHITECTURE}`, {
    hint: `build it for linux/${ARCHITECTURE}`,
  });
}

function descriptor(value: unknown, what: string): Descriptor {
  const { digest, size, mediaType, platform, annotations } = object(value);
  if (typeof digest !== "string" || !isDigest(digest)) refuseImage(`${what} has no sha256 digest`);
  if (!Number.isSafeInteger(size) || (size as number) < 0) refuseImage(`${what} has no size`);
  const on = platform === undefined ? undefined : object(platform);
  return {
    digest,
    size: size as number,
    media_type: text(mediaType),
    platform: on && { os: text(on["os"]), architecture: text(on["architecture"]), variant: text(on["variant"]) },
    ref_name: text(object(annotations)["org.opencontainers.image.ref.name"]) || undefined,
  };
}

const object = (value: unknown): Json =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) refuseImage(`${what} is missing`);
  return value;
}

function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(object(value)).filter((pair): pair is [string, string] => typeof pair[1] === "string"),
  );
}

const NS_PER_MS = 1_000_000;
const TIMES = { interval_ms: "Interval", timeout_ms: "Timeout", start_period_ms: "StartPeriod" } as const;

/** Docker's field, which images in OCI's format may have as well. Times are in nanoseconds; 0 is Docker's default. */
function healthcheck(value: Json): { healthcheck?: ImageHealthcheck } {
  const test = strings(value["Test"]);
  if (test.length === 0) return {};
  const times = Object.entries(TIMES).flatMap(([ours, theirs]) => {
    const time = value[theirs];
    return typeof time === "number" && time >= NS_PER_MS ? [[ours, Math.round(time / NS_PER_MS)] as const] : [];
  });
  return { healthcheck: { test, ...Object.fromEntries(times) } };
}

function environment(value: unknown): Record<string, string> {
  const pairs = strings(value).flatMap((line): [string, string][] => {
    const equals = line.indexOf("=");
    return equals < 1 ? [] : [[line.slice(0, equals), line.slice(equals + 1)]];
  });
  return Object.fromEntries(pairs);
}
