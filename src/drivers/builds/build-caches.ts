/**
 * The disk of an organization's builds: layer cache, working storage and the image that is being built. A sparse file with
 * ext4 in it, so that it has a size, and that no other organization's builds ever mount.
 */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { MountedVolume, VolumeMounts } from "#volumes/mounts.ts";
import { mountAt } from "../disk/mountinfo.ts";
import { mountLoop } from "../linux/loop.ts";
import { program } from "../linux/program.ts";

/** Volumes of machines have other ids. */
const PREFIX = "build-cache:";

export class BuildCaches {
  readonly #dir: string;
  readonly #bytes: number;

  constructor(dir: string, bytes: number) {
    this.#dir = dir;
    this.#bytes = bytes;
  }

  /** Those of an installation whose platform does not run: nothing is made there. */
  static in(data_dir: string): BuildCaches {
    return new BuildCaches(join(data_dir, "builds", "cache"), 0);
  }

  static readonly idOf = (org_id: string): string => `${PREFIX}${org_id}`;

  /** The volumes of machines, and these. */
  beside(volumes: VolumeMounts): VolumeMounts {
    const own = (id: string): string | undefined => (id.startsWith(PREFIX) ? id.slice(PREFIX.length) : undefined);
    return {
      mount: async (id) => {
        const org_id = own(id);
        return org_id === undefined ? await volumes.mount(id) : await this.mount(org_id);
      },
      unmount: async (id) => {
        const org_id = own(id);
        await (org_id === undefined ? volumes.unmount(id) : this.unmount(org_id));
      },
    };
  }

  async mount(org_id: string): Promise<MountedVolume> {
    const [file, at] = [join(this.#dir, `${org_id}.ext4`), join(this.#dir, "mnt", org_id)];
    mkdirSync(at, { recursive: true, mode: 0o700 });
    if (await mountAt(at)) return { dir: at };
    if (!existsSync(file)) await this.#make(file);
    await mountLoop(file, at);
    return { dir: at };
  }

  async unmount(org_id: string): Promise<void> {
    const at = join(this.#dir, "mnt", org_id);
    if (!(await mountAt(at))) return;
    // What a build deleted goes back to the host's disk: the file is sparse again. Without fstrim only space is lost.
    await program("fstrim", [at]).catch(() => {});
    await program("umount", [at]).catch(() => program("umount", ["--lazy", at]));
  }

  /** After a crash: what is still mounted, and what was not finished. */
  async clear(): Promise<void> {
    const mounts = join(this.#dir, "mnt");
    for (const org_id of existsSync(mounts) ? readdirSync(mounts) : []) await this.unmount(org_id);
    for (const name of existsSync(this.#dir) ? readdirSync(this.#dir) : [])
      if (name.endsWith(".part")) rmSync(join(this.#dir, name), { force: true });
  }

  /** Under its name only when it is whole. */
  async #make(file: string): Promise<void> {
    const part = `${file}.part`;
    rmSync(part, { force: true });
    closeSync(openSync(part, "wx", 0o600));
    const size = `${Math.floor(this.#bytes / 1024)}k`;
    await program("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", part, size]);
    renameSync(part, file);
  }
}
