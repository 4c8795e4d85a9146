import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "#core/errors.ts";
import { type Layout, readJson, syncFolder, writeWhole } from "./files.ts";
import type { ImageLimits } from "./limits.ts";

/** A name and its digest. */
export interface NameRecord {
  /** An organization's id, or `platform`, whose names are for all. */
  owner: string;
  /** Full name: `registry/repository:tag`, or `registry/repository@digest`. */
  name: string;
  digest: string;
  /** Imported and built-in images cannot be pulled again. */
  source: "pulled" | "imported" | "built-in";
  created_at: number;
  /** When a machine was last created from it, or it was pulled. */
  used_at: number;
  /** Fingerprint of a built-in image's inputs; it is rebuilt when they change. */
  made_from?: string;
}

/** Image names by owner. All are in memory; changes are durable before they are acknowledged. */
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

  /** Records its use. In memory only: losing it makes the image look slightly older. */
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

  /** Names contain slashes and colons and may be too long for a file name, so files are named by hash. */
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
