/**
 * Builds images in containers of the machine driver: with user ids, cgroup limits, a disk and a network of their own,
 * as machines have. Inside, buildah runs the steps; the image comes out as a layout on the app's build disk.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Builder, BuildFailed, type BuildRequest, type BuiltImage } from "#builds/builder.ts";
import { baseImages, readDockerfile } from "#builds/dockerfile.ts";
import { HEREDOC_DIR, withoutHeredocs } from "#builds/heredocs.ts";
import type { BuildLimits } from "#builds/limits.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Exit, Launch, RuntimeDriver } from "#machines/runtime/driver.ts";
import {
  type ImageCatalog,
  type ImageDetails,
  type ImagePart,
  type ImageSource,
  PLATFORM,
} from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { ImageRef } from "#machines/types.ts";
import type { VolumeMounts } from "#volumes/mounts.ts";
import { hexOf } from "../images/blobs.ts";
import { BaseLayouts } from "./base-layouts.ts";
import { BuildCaches } from "./build-caches.ts";
import { type BaseImage, buildScript, DISK, KNOWN_LAYERS, secretVariable } from "./build-script.ts";
import { buildahMissing, builderFingerprint, builderTar } from "./builder-root.ts";
import { type KnownLayers, readBuilt } from "./built-image.ts";

interface Parts {
  /** `builds` in the data dir. */
  dir: string;
  images: ImageSource & ImageCatalog;
  limits: BuildLimits;
  clock: Clock;
  /** Builds in the network can resolve DNS names while `work` runs. */
  withNames<T>(private_ip: string, work: () => Promise<T>): Promise<T>;
}

/** A base image in the build's input, where it has one layer. */
interface Brought extends BaseImage {
  layer: ImagePart;
}

const BUILDER = "hangar/builder:latest";
const LINES = 10_000;

export class ContainerBuilder implements Builder {
  readonly #parts: Parts;
  readonly #caches: BuildCaches;
  readonly #bases: BaseLayouts;
  /** Running builds, with their `/.svc` directories. */
  readonly #running = new Map<string, string>();
  #driver: RuntimeDriver | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#caches = new BuildCaches(join(parts.dir, "cache"), parts.limits);
    this.#bases = new BaseLayouts(join(parts.dir, "bases"), parts.limits.bases_kept, parts.clock);
  }

  /** Parts for the driver, so that it can run builds: their disks beside volumes, their files without an API. */
  ports(volumes: VolumeMounts, local_api: LocalApi): { volumes: VolumeMounts; local_api: LocalApi } {
    return {
      volumes: this.#caches.beside(volumes),
      local_api: {
        open: async (id) => this.#running.get(id) ?? (await local_api.open(id)),
        quiet: (id) => local_api.quiet(id),
        remove: async (id) => {
          if (!this.#running.has(id)) await local_api.remove(id);
        },
      },
    };
  }

  /** Wraps the driver for machines: running builds are neither reported as machines nor removed as orphans. */
  around(driver: RuntimeDriver): RuntimeDriver {
    this.#driver = driver;
    const recover: RuntimeDriver["recover"] = async (known) =>
      (await driver.recover(known)).filter(({ id }) => !this.#running.has(id));
    return new Proxy(driver, {
      get: (target, name) => {
        const value: unknown = name === "recover" ? recover : Reflect.get(target, name, target);
        return typeof value === "function" ? (value as () => unknown).bind(target) : value;
      },
    });
  }

  problem(): string | undefined {
    return buildahMissing();
  }

  async clear(): Promise<void> {
    await this.#caches.clear();
    this.#bases.clear();
  }

  async sweep(exists: (app_id: string) => Promise<boolean>): Promise<void> {
    await this.#caches.sweep(exists);
  }

  async build(request: BuildRequest, onOutput: (text: string) => void, signal: AbortSignal): Promise<BuiltImage> {
    const { id, context } = request;
    const driver = this.#driver ?? fail("build_refused", "this process runs no machines");
    signal.throwIfAborted();
    const input = join(context, "..", "input");
    mkdirSync(input, { recursive: true, mode: 0o755 });
    this.#running.set(id, input);
    try {
      const bases = await this.#bring(request, input, onOutput, signal);
      const known = await this.#knownLayers(request, bases);
      writeFileSync(join(input, KNOWN_LAYERS), [...known.keys()].map((diff_id) => `${hexOf(diff_id)}\n`).join(""));
      this.#writeDockerfile(request, bases, input);
      renameSync(context, join(input, "context"));
      writeFileSync(join(input, "ignore"), "", { mode: 0o444 });
      const script = buildScript(request, bases, this.#parts.limits.cache_full_percent);
      writeFileSync(join(input, "build.sh"), script, { mode: 0o444 });
      const image_ref = await this.#builderImage(signal);
      await this.#caches.hold(request);
      const exit = await this.#parts.withNames(request.private_ip, () =>
        this.#run(driver, this.#launch(request, image_ref), onOutput, signal),
      );
      if (exit.exit_code !== 0 || exit.oom_killed) throw new BuildFailed(failureOf(exit, this.#parts.limits));
      return await this.#take(request, known, signal);
    } finally {
      await driver.destroy(id, new AbortController().signal);
      await this.#caches.release(request);
      this.#running.delete(id);
    }
  }

  /** The Dockerfile that buildah reads, and the files of its here-documents. */
  #writeDockerfile({ context, dockerfile, args }: BuildRequest, bases: readonly BaseImage[], input: string): void {
    const envOf = (image: string) => Object.entries(bases.find(({ name }) => name === image)?.env ?? {});
    const { text, files } = withoutHeredocs(readDockerfile(join(context, dockerfile), this.#parts.limits), {
      args,
      envOf,
    });
    writeFileSync(join(input, "Dockerfile"), text, { mode: 0o444 });
    if (files.size === 0) return;
    // The context's own folder of this name, or link, would decide where they are written.
    rmSync(join(context, HEREDOC_DIR), { recursive: true, force: true });
    for (const [path, content] of files) {
      mkdirSync(join(context, path, ".."), { recursive: true, mode: 0o755 });
      writeFileSync(join(context, path), content, { mode: 0o644, flag: "wx" });
    }
  }

  /**
   * Gives the build its base images, found or pulled as for machines: pushed and imported ones, with the organization's
   * access to registries and their guarded addresses.
   */
  async #bring(request: BuildRequest, input: string, onOutput: (text: string) => void, signal: AbortSignal) {
    const { context, dockerfile } = request;
    const { limits } = this.#parts;
    const names = baseImages(readDockerfile(join(context, dockerfile), limits), request, limits);
    const bases: Brought[] = [];
    for (const name of names) {
      const target = join(input, "bases", String(bases.length));
      if (!(await this.#stored(name, request.org_id))) onOutput(`Pulling base image ${name}\n`);
      try {
        bases.push(await this.#bringOne(request, name, target, signal));
      } catch (thrown) {
        if (thrown instanceof ApiError) throw new BuildFailed(`base image ${name}: ${thrown.message}`);
        throw thrown;
      }
    }
    return bases;
  }

  /** The image, once its layout is in the folder `target`. */
  async #bringOne({ id, org_id }: BuildRequest, name: string, target: string, signal: AbortSignal): Promise<Brought> {
    const { images } = this.#parts;
    const holder = `${id}-base`;
    try {
      const held = await images.hold({ id: holder, org_id }, await images.resolve(name, org_id, signal), signal);
      const layer = await this.#bases.put(held, target);
      return { name, digest: held.ref.digest, env: held.config.env, layer };
    } finally {
      await images.release(holder);
    }
  }

  /** Of the base images, and of the app's last build. */
  async #knownLayers({ image, org_id }: BuildRequest, bases: readonly Brought[]): Promise<KnownLayers> {
    const { images } = this.#parts;
    const before = await this.#stored(image, org_id);
    const last = (before && (await images.parts(before.digest, org_id))) ?? [];
    const known = new Map(last.map((part) => [part.diff_id, [part]]));
    for (const { layer, digest } of bases) known.set(layer.diff_id, (await images.parts(digest, org_id)) ?? [layer]);
    return known;
  }

  async #stored(name: string, org_id: string): Promise<ImageDetails | undefined> {
    try {
      return await this.#parts.images.show(name, org_id);
    } catch (thrown) {
      if (thrown instanceof ApiError) return undefined;
      throw thrown;
    }
  }

  /** The image that builds run in; made anew when what it is made of has changed. */
  async #builderImage(signal: AbortSignal): Promise<ImageRef> {
    const { images, dir } = this.#parts;
    const file = join(dir, "builder-image");
    const fingerprint = builderFingerprint();
    const known = readIfThere(file) === fingerprint && (await this.#stored(BUILDER, PLATFORM));
    if (!known) {
      await images.import(BUILDER, builderTar(), PLATFORM, signal);
      writeFileSync(file, fingerprint, { mode: 0o600 });
    }
    return await images.resolve(BUILDER, PLATFORM, signal);
  }

  #launch(request: BuildRequest, image_ref: ImageRef): Launch {
    const { id, app_name, org_id, private_ip, egress, secrets } = request;
    const { cpus, memory_mb } = this.#parts.limits;
    const variables = Object.values(secrets).map((value, index): [string, string] => [
      secretVariable(index),
      Buffer.from(value).toString("base64"),
    ]);
    return {
      id,
      boot: randomUUID(),
      name: `build-${id}`,
      app_name,
      org_id,
      region: "",
      instance_id: id,
      private_ip,
      image_ref,
      config: {
        image: BUILDER,
        guest: { cpu_kind: "shared", cpus, memory_mb },
        init: { exec: ["/bin/sh", "/.svc/build.sh"] },
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LD_LIBRARY_PATH: "/usr/lib", ...Object.fromEntries(variables) },
        mounts: [{ volume: BuildCaches.idOf(request), path: DISK }],
      },
      secrets: {},
      egress,
      keep_rootfs: false,
      sandbox: "build",
    };
  }

  async #run(driver: RuntimeDriver, launch: Launch, onOutput: (text: string) => void, signal: AbortSignal) {
    const { id, boot } = launch;
    const exited = Promise.withResolvers<Exit>();
    const ends = [driver.onExit((notice) => notice.id === id && notice.boot === boot && exited.resolve(notice))];
    let cursor: string | undefined;
    let reading: Promise<void> = Promise.resolve();
    const read = async (): Promise<void> => {
      const page = await driver.logs(id, cursor === undefined ? { tail: LINES } : { cursor });
      cursor = page.cursor;
      if (page.lines.length > 0) onOutput(page.lines.map(({ message }) => `${message}\n`).join(""));
    };
    const wake = (): void => {
      reading = reading.then(read).catch(() => {});
    };
    const stop = (): void => exited.reject(signal.reason as Error);
    try {
      signal.addEventListener("abort", stop, { once: true });
      await driver.start(launch, signal);
      ends.push(driver.watchLogs(id, wake));
      wake();
      const exit = await exited.promise;
      wake();
      await reading;
      return exit;
    } finally {
      exited.promise.catch(() => {});
      signal.removeEventListener("abort", stop);
      for (const end of ends) end();
    }
  }

  /** Imports what the build left on its disk. Nothing of the build runs. */
  async #take(request: BuildRequest, known: KnownLayers, signal: AbortSignal): Promise<BuiltImage> {
    const { org_id, image } = request;
    const { dir } = await this.#caches.mount(request);
    try {
      const parts = readBuilt(dir, known);
      try {
        const { digest } = await this.#parts.images.assemble(image, parts, org_id, signal);
        return { digest };
      } finally {
        parts.close();
      }
    } finally {
      // The name itself: a link of this name would be removed, not followed.
      rmSync(join(dir, "out"), { recursive: true, force: true });
    }
  }
}

function failureOf({ exit_code, oom_killed, oom }: Exit, { memory_mb }: BuildLimits): string {
  if (oom_killed)
    return `the build ran out of memory${oom ? ` in ${oom.process}` : ""}: it has ${memory_mb} MB (limit memory_mb)`;
  return `the build failed with exit code ${exit_code}; its log says why`;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
