import { fail } from "#core/errors.ts";
import { metadataProblems } from "./config.ts";
import type { Leases } from "./lease.ts";
import type { Ledger } from "./ledger.ts";
import { refuse } from "./rules.ts";
import type { Asker } from "./service.ts";
import type { Machine } from "./types.ts";

export interface MetadataWish {
  /** Name to value; null removes. */
  pairs: Record<string, string | null>;
  /** Whether pairs that are not named go. */
  replace: boolean;
  machine_version?: string | undefined;
}

/** Changes a machine's metadata in place: no new version, no restart. */
export class Metadata {
  readonly #parts: { ledger: Ledger; leases: Leases };

  constructor(parts: { ledger: Ledger; leases: Leases }) {
    this.#parts = parts;
  }

  async change(id: string, wish: MetadataWish, asker: Asker): Promise<Machine> {
    return await this.#parts.ledger.change(id, (draft) => {
      const { machine } = draft;
      if (machine.state === "destroyed") fail("not_found", `machine not found: ${id} is destroyed`);
      this.#parts.leases.check(machine, asker.nonce);
      if (wish.machine_version && wish.machine_version !== machine.instance_id) {
        fail("version_stale", `machine ${id} is at version ${machine.instance_id}, not ${wish.machine_version}`);
      }
      const metadata = merged(wish, machine.config.metadata ?? {});
      refuse(metadataProblems(metadata, "body.metadata"));
      draft.setMetadata(metadata);
      return true;
    });
  }
}

function merged({ pairs, replace }: MetadataWish, before: Record<string, string>): Record<string, string> {
  const all = replace ? pairs : { ...before, ...pairs };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null));
}
