import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { type Layout, readJson, writeSoon } from "./files.ts";

/** A machine that uses an image. */
export interface Hold {
  machine_id: string;
  org_id: string;
  digest: string;
}

/**
 * Records which machine uses which image, before the image is pulled, so that clean-up keeps it. Not synced, because
 * that would delay every first start. What a power cut loses is written again at the machine's next start; until then
 * an image not used for long could be removed, and would be pulled again.
 */
export class Holds {
  readonly #layout: Layout;
  readonly #holds = new Map<string, Hold>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  async open(): Promise<void> {
    for (const file of await readdir(this.#layout.holds)) {
      const hold = await readJson<Hold>(join(this.#layout.holds, file)).catch(() => undefined);
      if (hold) this.#holds.set(hold.machine_id, hold);
    }
  }

  list(): Hold[] {
    return [...this.#holds.values()];
  }

  /** Machines that use the image and are visible to `viewer`: an organization's own, or all. */
  of(digest: string, viewer: string): string[] {
    const shown = ({ org_id }: Hold): boolean => viewer === PLATFORM || viewer === org_id;
    return this.list().flatMap((hold) => (hold.digest === digest && shown(hold) ? [hold.machine_id] : []));
  }

  put(hold: Hold): void {
    const before = this.#holds.get(hold.machine_id);
    if (before?.digest === hold.digest && before.org_id === hold.org_id) return;
    writeSoon(this.#layout, this.#file(hold.machine_id), `${JSON.stringify(hold)}\n`);
    this.#holds.set(hold.machine_id, hold);
  }

  async remove(machine_id: string): Promise<void> {
    if (!this.#holds.delete(machine_id)) return;
    await rm(this.#file(machine_id), { force: true });
  }

  #file(machine_id: string): string {
    return join(this.#layout.holds, `${encodeURIComponent(machine_id)}.json`);
  }
}
