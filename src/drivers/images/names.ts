import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "#core/errors.ts";
import { type Layout, readJson, syncFolder, writeWhole } from "./files.ts";
import type { ImageLimits } from "./limits.ts";

/** What a name stands for. */
export interface NameRecord {
  /** An organization's id, or `platform`: then it is everyone's. */
  owner: string;
  /** In full: `registry/repository:tag`, or `registry/repository@digest`. */
  name: string;
  digest: string;
  /** Imported and built-in images cannot be had again by asking a registry. */
  source: "pulled" | "imported" | "built-in";
  created_at: number;
  /** When a machine was last made from it, or it was pulled. */
  used_at: number;
  /** What a built-in image was made from; another one is made when that has changed. */
  made_from?: string;
}

/** Names of images, by owner. All of them are in memory; a change is on the disk before it is answered. */
export class Names {
  readonly #layout: Layout;
  readonly #limits: ImageLimits;
  readonly #owners = new Map<string, Map<string, NameRecord>>();

  constructor(layout: Layout, limits: ImageLimits) {
    this.#layout = layout;
    this.#limits = limits;
  }

  async open(): Promise<void> {
    for (const owner of await readdir(this.#layout.names)) {
      for (const file of await readdir(join(this.#layout.names, owner))) {
        const record = await readJson<NameRecord>(join(this.#layout.names, owner, file)).catch(() => undefined);
        if (record) this.#of(owner).set(record.name, record);
      }
    }
  }

  get(owner: string, name: string): NameRecord | undefined {
    return this.#owners.get(owner)?.get(name);
  }

  list(owner?: string): NameRecord[] {
    const owners =
      owner === undefined ? [...this.#owners.values()] : [this.#owners.get(owner) ?? new Map<string, NameRecord>()];
    return owners.flatMap((names) => [...names.values()]);
  }

  async put(record: NameRecord): Promise<void> {
    const names = this.#of(record.owner);
    if (!names.has(record.name)) refuseTooMany(names.size, this.#limits);
    await writeWhole(this.#layout, this.#file(record), `${JSON.stringify(record)}\n`);
    names.set(record.name, record);
  }

  /** Notes that it was used. In memory alone: losing it only makes the image look a little older. */
  touch(record: NameRecord, now: number): void {
    this.#of(record.owner).set(record.name, { ...record, used_at: now });
  }

  async remove(record: NameRecord): Promise<void> {
    await rm(this.#file(record), { force: true });
    await syncFolder(join(this.#layout.names, record.owner));
    this.#of(record.owner).delete(record.name);
  }

  #of(owner: string): Map<string, NameRecord> {
    const names = this.#owners.get(owner) ?? new Map<string, NameRecord>();
    this.#owners.set(owner, names);
    return names;
  }

  /** Names have slashes and colons, and are longer than a file's name may be: their hash is what they are kept under. */
  #file({ owner, name }: NameRecord): string {
    return join(this.#layout.names, owner, `${fileName(name)}.json`);
  }
}

export function refuseTooMany(count: number, { names_per_org }: ImageLimits): void {
  if (count < names_per_org) return;
  fail("limit_reached", `this organization has ${count} images (limit names_per_org is ${names_per_org})`, {
    hint: "`hangar images rm` removes one",
  });
}

const fileName = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 40);
