import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "#core/log.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { hexOf } from "./blobs.ts";
import { type Layout, readJson, syncFolder, temporary, writeWhole } from "./files.ts";
import { emptyKernelFolders } from "./kernel-folders.ts";
import type { ImageLimits } from "./limits.ts";
import { Mutex, Once } from "./mutex.ts";
import { type Quota, treeBytes } from "./quota.ts";
import { LayerFault, refuseImage } from "./refusal.ts";
import type { TreeFacts } from "./tree.ts";
import { unpackLayer } from "./unpacking.ts";

/** The bytes of a layer after they were obtained. */
export interface LayerSource {
  file: string;
  start: number;
  length: number;
  /** Expected digest of the packed bytes, from the manifest. Absent when already verified. */
  digest?: string;
  /** Releases the bytes. */
  done(): Promise<void>;
  /** Called when the layer could not be unpacked now. Absent when a retry finds the bytes again. */
  failed?(): Promise<void>;
}

export interface LayerRecord extends TreeFacts {
  diff_id: string;
  /** Owners that have provided its bytes: organizations, or the platform for all. */
  owners: string[];
  /** Unpacked without the content of /dev, /proc and /sys; absent in layers of earlier versions. */
  bare_kernel_folders?: true;
}

export interface LayerRequest {
  diff_id: string;
  owner: string;
  /** Obtains the bytes; called only when needed. */
  source(signal: AbortSignal): Promise<LayerSource>;
  onState(state: "unpacking" | "done" | "here"): void;
  /** The bytes are available and must match, even when the layer is local. */
  verify?: boolean;
}

interface LayerParts {
  layout: Layout;
  limits: ImageLimits;
  log: Log;
  quota: Pick<Quota, "left" | "check" | "refuse">;
}

/**
 * Unpacked layers, one directory each, shared between images. A layer exists when its record does. Naming a layer gives
 * no access: an organization may use an existing one only after it, or the platform, provided its bytes once. Otherwise
 * a config with the right hash would expose another organization's files.
 */
export class Layers {
  readonly #layout: Layout;
  readonly #limits: ImageLimits;
  readonly #log: Log;
  readonly #quota: Pick<Quota, "left" | "check" | "refuse">;
  readonly #records = new Map<string, LayerRecord>();
  readonly #once = new Once<LayerRecord>();
  readonly #unpacks: Mutex;
  #emptying: Promise<unknown> = Promise.resolve();

  constructor({ layout, limits, log, quota }: LayerParts) {
    this.#quota = quota;
    this.#layout = layout;
    this.#limits = limits;
    this.#log = log;
    this.#unpacks = new Mutex(limits.unpacks_parallel);
  }

  /** Reads the records. A directory without a record, or the reverse, was left by a crash. */
  async open(): Promise<void> {
    const names = new Set(await readdir(this.#layout.layers));
    for (const name of names) {
      const hex = name.replace(/\.json$/, "");
      const record = names.has(hex) && names.has(`${hex}.json`) ? await this.#read(hex) : undefined;
      if (record) this.#records.set(record.diff_id, await this.#upgraded(record));
      else if (name === hex) await rename(this.folder(`sha256:${hex}`), temporary(this.#layout, "tree"));
      else if (!names.has(hex)) await rm(join(this.#layout.layers, name), { force: true });
    }
  }

  folder(diff_id: string): string {
    return join(this.#layout.layers, hexOf(diff_id));
  }

  get(diff_id: string): LayerRecord | undefined {
    return this.#records.get(diff_id);
  }

  list(): LayerRecord[] {
    return [...this.#records.values()];
  }

  /** Whether it is local and available to the owner. */
  has(diff_id: string, owner: string): boolean {
    const owners = this.#records.get(diff_id)?.owners ?? [];
    return owners.includes(owner) || owners.includes(PLATFORM);
  }

  /**
   * Makes the layer local and available to the owner. Concurrent calls for the same layer and owner share one download.
   */
  async ensure(request: LayerRequest, signal: AbortSignal): Promise<LayerRecord> {
    const { diff_id, owner } = request;
    const here = this.#records.get(diff_id);
    if (here && this.has(diff_id, owner) && !request.verify) {
      request.onState("here");
      return here;
    }
    const record = request.verify
      ? await this.#get(request, signal)
      : await this.#once.do(`${diff_id} ${owner}`, signal, (all) => this.#get(request, all));
    request.onState("done");
    return record;
  }

  /** Renamed at once, deleted in the background. */
  async remove(diff_id: string): Promise<void> {
    this.#records.delete(diff_id);
    const file = `${this.folder(diff_id)}.json`;
    await rm(file, { force: true });
    await syncFolder(this.#layout.layers);
    const trash = temporary(this.#layout, "tree");
    await rename(this.folder(diff_id), trash).catch(() => {});
    const emptied = rm(trash, { recursive: true, force: true }).catch((error: unknown) =>
      this.#log.warn({ error, diff_id }, "a layer's folder could not be removed; the next start tries again"),
    );
    this.#emptying = Promise.all([this.#emptying, emptied]);
  }

  /** Resolves when all removed layers are deleted. */
  async emptied(): Promise<void> {
    await this.#emptying;
  }

  async #get({ diff_id, owner, source, onState }: LayerRequest, signal: AbortSignal): Promise<LayerRecord> {
    const bytes = await source(signal);
    const unpacked = this.#unpacks.acquire(signal, async () => {
      onState("unpacking");
      // A concurrent pull by another organization may have been faster.
      const here = this.#records.get(diff_id);
      if (here) await this.#compare(diff_id, bytes, signal);
      if (here && !here.owners.includes(owner)) await this.#quota.check(owner, treeBytes(here));
      const facts = here ?? (await this.#unpack({ diff_id, owner }, bytes, signal));
      const record = await this.#record(diff_id, facts, owner);
      await bytes.done();
      return record;
    });
    return await unpacked.catch(async (thrown: unknown) => {
      await bytes.failed?.();
      throw thrown;
    });
  }

  async #unpack(
    { diff_id, owner }: Pick<LayerRequest, "diff_id" | "owner">,
    bytes: LayerSource,
    signal: AbortSignal,
  ): Promise<TreeFacts> {
    const left = await this.#quota.left(owner);
    const tree_bytes = Math.min(left, this.#limits.tree_bytes);
    const limits = { ...this.#limits, tree_bytes };
    const into = temporary(this.#layout, "tree");
    await mkdir(into, { mode: 0o755 });
    try {
      const { file, start, length } = bytes;
      const { diff_id: found, digest, ...facts } = await unpackLayer({ file, start, length, into, limits }, signal);
      refuseOther({ diff_id, digest: bytes.digest }, { diff_id: found, digest });
      // Other layers may have been unpacked meanwhile, and each entry counts too.
      await this.#quota.check(owner, treeBytes(facts));
      // A copy unpacked meanwhile for another owner is used.
      if (!existsSync(this.folder(diff_id))) await rename(into, this.folder(diff_id));
      await syncFolder(this.#layout.layers);
      if (facts.left_out > 0)
        this.#log.info(
          { diff_id, left_out: facts.left_out },
          "devices and entries of /dev, /proc and /sys of a layer were left out",
        );
      return facts;
    } catch (thrown) {
      if (thrown instanceof LayerFault) {
        await bytes.done();
        if (tree_bytes < this.#limits.tree_bytes && /limit tree_bytes/.test(thrown.message)) this.#quota.refuse();
        refuseImage(`layer ${diff_id} cannot be unpacked: ${thrown.message}`);
      }
      throw thrown;
    } finally {
      await rm(into, { recursive: true, force: true });
    }
  }

  async #compare(diff_id: string, bytes: LayerSource, signal: AbortSignal): Promise<void> {
    const { file, start, length, done } = bytes;
    try {
      const found = await unpackLayer({ file, start, length, limits: this.#limits }, signal);
      refuseOther({ diff_id, digest: bytes.digest }, found);
    } catch (thrown) {
      if (!(thrown instanceof LayerFault)) throw thrown;
      await done();
      refuseImage(`layer ${diff_id} cannot be read: ${thrown.message}`);
    }
  }

  async #record(diff_id: string, facts: TreeFacts, owner: string): Promise<LayerRecord> {
    const owners = new Set([...(this.#records.get(diff_id)?.owners ?? []), owner]);
    const record: LayerRecord = { ...facts, diff_id, owners: [...owners], bare_kernel_folders: true };
    // In memory first, so that concurrent updates by two organizations do not overwrite each other.
    this.#records.set(diff_id, record);
    await this.#write(record);
    return record;
  }

  /** Upgrades a layer of an earlier version. */
  async #upgraded(record: LayerRecord): Promise<LayerRecord> {
    if (record.bare_kernel_folders) return record;
    emptyKernelFolders(this.folder(record.diff_id));
    const upgraded: LayerRecord = { ...record, bare_kernel_folders: true };
    await this.#write(upgraded);
    return upgraded;
  }

  async #write(record: LayerRecord): Promise<void> {
    await writeWhole(this.#layout, `${this.folder(record.diff_id)}.json`, `${JSON.stringify(record)}\n`);
  }

  async #read(hex: string): Promise<LayerRecord | undefined> {
    return await readJson<LayerRecord>(join(this.#layout.layers, `${hex}.json`)).catch(() => undefined);
  }
}

/** Verifies the packed bytes against the manifest, and the tar against the config. */
function refuseOther(
  wanted: { diff_id: string; digest: string | undefined },
  found: { diff_id: string; digest: string },
): void {
  if (wanted.digest !== undefined && wanted.digest !== found.digest)
    throw new LayerFault(`the image's manifest says its digest is ${wanted.digest}, and it is ${found.digest}`);
  if (wanted.diff_id !== found.diff_id)
    throw new LayerFault(`the image's config says ${wanted.diff_id}, and it is ${found.diff_id}`);
}
