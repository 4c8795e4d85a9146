/**
 * The disk of an app's builds: layer cache, working storage and the image that is being built. A sparse file with ext4 in
 * it, so that it has a size. Steps of a Dockerfile can reach all of it through faults of buildah, so no other app's builds
 * ever mount it: not even in the same organization, where a token may be narrowed to one app.
 */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { BuildLimits } from "#builds/limits.ts";
import type { MountedVolume, VolumeMounts } from "#volumes/mounts.ts";
import { mountAt } from "../disk/mountinfo.ts";
import { deviceOf, mountDevice, mountLoop } from "../linux/loop.ts";
import { program } from "../linux/program.ts";

export interface CacheOwner {
  org_id: string;
  app_id: string;
}

type CacheLimits = Pick<BuildLimits, "cache_bytes" | "org_cache_bytes">;

/** Volumes of machines have other ids. */
const PREFIX = "build-cache:";
const DISK = ".ext4";

export class BuildCaches {
  readonly #dir: string;
  readonly #limits: CacheLimits;
  /** Disks that builds use. */
  readonly #used = new Set<string>();

  constructor(dir: string, limits: CacheLimits) {
    this.#dir = dir;
    this.#limits = limits;
  }

  /** Those of an installation whose platform does not run: nothing is made there. */
  static in(data_dir: string): BuildCaches {
    return new BuildCaches(join(data_dir, "builds", "cache"), { cache_bytes: 0, org_cache_bytes: 0 });
  }

  static readonly idOf = ({ org_id, app_id }: CacheOwner): string => `${PREFIX}${nameOf({ org_id, app_id })}`;

  /** The volumes of machines, and these. */
  beside(volumes: VolumeMounts): VolumeMounts {
    const own = (id: string): string | undefined => (id.startsWith(PREFIX) ? id.slice(PREFIX.length) : undefined);
    return {
      mount: async (id) => {
        const name = own(id);
        return name === undefined ? await volumes.mount(id) : await this.#mount(name);
      },
      unmount: async (id) => {
        const name = own(id);
        await (name === undefined ? volumes.unmount(id) : this.#unmount(name));
      },
    };
  }

  mount(owner: CacheOwner): Promise<MountedVolume> {
    return this.#mount(nameOf(owner));
  }

  unmount(owner: CacheOwner): Promise<void> {
    return this.#unmount(nameOf(owner));
  }

  /** Until `release` it stays mounted, whatever becomes of the container. */
  async hold(owner: CacheOwner): Promise<void> {
    this.#used.add(nameOf(owner));
    await this.mount(owner);
  }

  async release(owner: CacheOwner): Promise<void> {
    this.#used.delete(nameOf(owner));
    await this.unmount(owner);
  }

  async #mount(name: string): Promise<MountedVolume> {
    const [file, at] = [join(this.#dir, `${name}${DISK}`), join(this.#dir, "mnt", name)];
    mkdirSync(at, { recursive: true, mode: 0o700 });
    if (await mountAt(at)) return { dir: at };
    await this.#makeRoom(name);
    if (!existsSync(file)) await this.#make(file);
    // Another process may still have it mounted in a namespace of its own. Through the same device both see one file
    // system; through a second device each would write over the other.
    const device = deviceOf(file);
    await (device === undefined ? mountLoop(file, at) : mountDevice(device, at));
    return { dir: at };
  }

  async #unmount(name: string): Promise<void> {
    const at = join(this.#dir, "mnt", name);
    if (this.#used.has(name) || !(await mountAt(at))) return;
    // What a build deleted goes back to the host's disk: the file is sparse again. Without fstrim only space is lost.
    await program("fstrim", [at]).catch(() => {});
    await program("umount", [at]).catch(() => program("umount", ["--lazy", at]));
  }

  /** Removes the disks of the organization's other apps that were written to longest ago, until one more may become full. */
  async #makeRoom(name: string): Promise<void> {
    const { cache_bytes, org_cache_bytes } = this.#limits;
    const others = readdirSync(this.#dir)
      .filter((file) => file.endsWith(DISK) && orgOf(file) === orgOf(name) && file !== `${name}${DISK}`)
      .map((file) => ({ file, ...usedBy(join(this.#dir, file)) }))
      .sort((a, b) => a.used_at - b.used_at);
    let bytes = others.reduce((sum, other) => sum + other.bytes, 0);
    for (const other of others) {
      if (bytes + cache_bytes <= org_cache_bytes) return;
      if (await mountAt(join(this.#dir, "mnt", other.file.slice(0, -DISK.length)))) continue;
      rmSync(join(this.#dir, other.file), { force: true });
      bytes -= other.bytes;
    }
  }

  /** After a crash: what is still mounted, and what was not finished. After an upgrade: disks of whole organizations. */
  async clear(): Promise<void> {
    const mounts = join(this.#dir, "mnt");
    for (const name of existsSync(mounts) ? readdirSync(mounts) : []) await this.#unmount(name);
    for (const name of existsSync(this.#dir) ? readdirSync(this.#dir) : [])
      if (name.endsWith(".part") || isOfWholeOrg(name)) rmSync(join(this.#dir, name), { force: true });
  }

  /** Removes the disks of apps that do not exist, and those of earlier versions, which had one per organization. */
  async sweep(exists: (app_id: string) => Promise<boolean>): Promise<void> {
    for (const file of existsSync(this.#dir) ? readdirSync(this.#dir) : []) {
      if (!file.endsWith(DISK)) continue;
      const name = file.slice(0, -DISK.length);
      if (this.#used.has(name) || (await exists(name.split(".")[1] ?? ""))) continue;
      await this.#unmount(name);
      if (!(await mountAt(join(this.#dir, "mnt", name)))) rmSync(join(this.#dir, file), { force: true });
    }
  }

  /** Under its name only when it is whole. */
  async #make(file: string): Promise<void> {
    const part = `${file}.part`;
    rmSync(part, { force: true });
    closeSync(openSync(part, "wx", 0o600));
    const size = `${Math.floor(this.#limits.cache_bytes / 1024)}k`;
    await program("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", part, size]);
    renameSync(part, file);
  }
}

const nameOf = ({ org_id, app_id }: CacheOwner): string => `${org_id}.${app_id}`;
const orgOf = (name: string): string => name.split(".")[0] ?? "";

/** Made before each app had a disk of its own; no build mounts it any more. */
const isOfWholeOrg = (file: string): boolean => /^[^.]+\.ext4$/.test(file);

function usedBy(file: string): { bytes: number; used_at: number } {
  const { blocks, mtimeMs } = statSync(file);
  return { bytes: blocks * 512, used_at: mtimeMs };
}
