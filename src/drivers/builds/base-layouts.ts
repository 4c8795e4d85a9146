/**
 * Base images of the platform's own store as OCI layouts that buildah can read. The store has unpacked layers; they are
 * shown as one tree and packed as one layer, once for each image.
 */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import type { HeldImage, ImageHealthcheck, ImagePart } from "#machines/runtime/image-source.ts";
import { parseDocument, readIndex, readManifest } from "../images/documents.ts";
import { IMAGE_LIMITS } from "../images/limits.ts";
import { detach, MS, mount } from "../linux/calls.ts";
import { program } from "../linux/program.ts";

const PACK_MS = 10 * 60_000;
/** Changes when what a layout says does. */
const VERSION = 3;
const MEDIA = "application/vnd.oci.image";

export class BaseLayouts {
  readonly #dir: string;
  readonly #most: number;
  readonly #clock: Clock;
  readonly #making = new Map<string, Promise<void>>();

  constructor(dir: string, most: number, clock: Clock) {
    this.#dir = dir;
    this.#most = most;
    this.#clock = clock;
  }

  /** Puts the image's layout into the folder `target`, made when it is not here yet. Returns its layer. */
  async put(image: HeldImage, target: string): Promise<ImagePart> {
    const layout = join(this.#dir, `${VERSION}-${image.ref.digest.replace(":", "-")}`);
    // Another build may have removed it while this one waited. From here to the links nothing is waited for.
    while (!existsSync(layout)) await this.#makeOnce(image, layout);
    const now = this.#clock.now() / 1000;
    utimesSync(layout, now, now);
    linkTree(layout, target);
    this.#forgetOldest();
    return layerIn(target);
  }

  /** Builds at the same time, of any organization, wait for the one that makes it; when that fails, the next one tries. */
  async #makeOnce(image: HeldImage, layout: string): Promise<void> {
    const making = this.#making.get(layout);
    if (making) return await making.catch(() => {});
    const made = this.#make(image, layout).finally(() => this.#making.delete(layout));
    this.#making.set(layout, made);
    await made;
  }

  /** After a crash: what was not finished. */
  clear(): void {
    for (const name of existsSync(this.#dir) ? readdirSync(this.#dir) : [])
      if (name.endsWith(".part")) {
        detachQuietly(join(this.#dir, name, "root"));
        rmSync(join(this.#dir, name), { recursive: true, force: true });
      }
  }

  async #make(image: HeldImage, layout: string): Promise<void> {
    const part = `${layout}.part`;
    detachQuietly(join(part, "root"));
    rmSync(part, { recursive: true, force: true });
    const blobs = join(part, "blobs", "sha256");
    mkdirSync(blobs, { recursive: true, mode: 0o755 });
    const layer = await packTree(image.layers, part);
    const keep = (content: object) => {
      const bytes = Buffer.from(JSON.stringify(content));
      const hex = createHash("sha256").update(bytes).digest("hex");
      writeFileSync(join(blobs, hex), bytes, { mode: 0o444 });
      return { digest: `sha256:${hex}`, size: bytes.length };
    };
    renameSync(join(part, "layer"), join(blobs, layer.digest.slice("sha256:".length)));
    const config = keep(configOf(image, layer.digest));
    const manifest = keep({
      schemaVersion: 2,
      mediaType: `${MEDIA}.manifest.v1+json`,
      config: { mediaType: `${MEDIA}.config.v1+json`, ...config },
      layers: [{ mediaType: `${MEDIA}.layer.v1.tar`, ...layer }],
    });
    const index = { schemaVersion: 2, manifests: [{ mediaType: `${MEDIA}.manifest.v1+json`, ...manifest }] };
    writeFileSync(join(part, "index.json"), JSON.stringify(index), { mode: 0o444 });
    writeFileSync(join(part, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}', { mode: 0o444 });
    rmSync(layout, { recursive: true, force: true });
    renameSync(part, layout);
  }

  #forgetOldest(): void {
    const found = readdirSync(this.#dir)
      .filter((name) => !name.endsWith(".part"))
      .map((name) => ({ name, used: statSync(join(this.#dir, name)).mtimeMs }))
      .sort((a, b) => b.used - a.used);
    for (const { name } of found.slice(this.#most)) rmSync(join(this.#dir, name), { recursive: true, force: true });
  }
}

function configOf({ config, architecture, labels, exposed_ports }: HeldImage, diff_id: string): object {
  return {
    architecture,
    os: "linux",
    config: {
      Env: Object.entries(config.env).map(([name, value]) => `${name}=${value}`),
      Entrypoint: config.entrypoint.length === 0 ? null : config.entrypoint,
      Cmd: config.cmd.length === 0 ? null : config.cmd,
      WorkingDir: config.working_dir,
      User: config.user,
      Labels: labels,
      ExposedPorts: Object.fromEntries(exposed_ports.map((port) => [port, {}])),
      ...(config.stop_signal === undefined ? {} : { StopSignal: config.stop_signal }),
      ...(config.healthcheck === undefined ? {} : { Healthcheck: dockerHealthcheck(config.healthcheck) }),
    },
    rootfs: { type: "layers", diff_ids: [diff_id] },
    // Without a time buildah writes the current one into the image, and nothing is found in its cache.
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "base image", empty_layer: false }],
  };
}

const NS_PER_MS = 1_000_000;

const dockerHealthcheck = ({ test, interval_ms, timeout_ms, start_period_ms }: ImageHealthcheck): object => ({
  Test: test,
  Interval: (interval_ms ?? 0) * NS_PER_MS,
  Timeout: (timeout_ms ?? 0) * NS_PER_MS,
  StartPeriod: (start_period_ms ?? 0) * NS_PER_MS,
});

/** One tar of all layers together, as `layer` in the folder. */
async function packTree(layers: readonly string[], dir: string): Promise<{ digest: string; size: number }> {
  const [root, file] = [join(dir, "root"), join(dir, "layer")];
  const [only = root] = layers;
  mkdirSync(root);
  const mounted = layers.length > 1;
  if (mounted) mount("overlay", root, "overlay", MS.NOSUID | MS.NODEV, `lowerdir=${layers.toReversed().join(":")}`);
  try {
    const preserve = ["--numeric-owner", "--sort=name", "--xattrs", "--xattrs-include=security.capability"];
    await program("tar", [...preserve, "-C", mounted ? root : only, "-cf", file, "."], { timeout_ms: PACK_MS });
  } finally {
    if (mounted) detach(root);
  }
  rmSync(root, { recursive: true, force: true });
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return { digest: `sha256:${hash.digest("hex")}`, size: statSync(file).size };
}

function layerIn(layout: string): ImagePart {
  const blob = (digest = ""): string => join(layout, "blobs", digest.replace(":", "/"));
  const read = (file: string) => parseDocument(readFileSync(file), file);
  const [manifest] = readIndex(read(join(layout, "index.json")), layout);
  const [layer] = readManifest(read(blob(manifest?.digest)), IMAGE_LIMITS).layers;
  const { digest = "", size = 0, media_type = "" } = layer ?? {};
  return { diff_id: digest, digest, size, media_type, file: blob(digest) };
}

/** Hard-links the same files: no build may write to them. */
function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o755 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isDirectory()) linkTree(join(from, entry.name), join(to, entry.name));
    else linkSync(join(from, entry.name), join(to, entry.name));
  }
}

function detachQuietly(path: string): void {
  try {
    detach(path);
  } catch {
    // It is not mounted.
  }
}
