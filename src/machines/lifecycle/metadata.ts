import { fail } from "#core/errors.ts";
import { metadataProblems } from "../config/config.ts";
import type { Actor } from "../inputs.ts";
import type { Machine } from "../types.ts";
import type { Leases } from "./lease.ts";
import { rejectInvalid } from "./rules.ts";
import type { MachineWriter } from "./writer.ts";

export interface MetadataInput {
  /** Name to value; null removes. */
  pairs: Record<string, string | null>;
  /** Whether unnamed pairs are removed. */
  replace: boolean;
  machine_version?: string | undefined;
}

/** Changes a machine's metadata in place, without a new version or a restart. */
export class Metadata {
  readonly #parts: { writer: MachineWriter; leases: Leases };

  constructor(parts: { writer: MachineWriter; leases: Leases }) {
    this.#parts = parts;
  }

  async change(id: string, input: MetadataInput, actor: Actor): Promise<Machine> {
    return await this.#parts.writer.change(id, (transaction) => {
      const { machine } = transaction;
      if (machine.state === "destroyed") fail("not_found", `machine not found: ${id} is destroyed`);
      this.#parts.leases.check(machine, actor.nonce);
      if (input.machine_version && input.machine_version !== machine.instance_id) {
        fail("version_stale", `machine ${id} is at version ${machine.instance_id}, not ${input.machine_version}`);
      }
      const metadata = merged(input, machine.config.metadata ?? {});
      rejectInvalid(metadataProblems(metadata, "body.metadata"));
      transaction.setMetadata(metadata);
      return true;
    });
  }
}

function merged({ pairs, replace }: MetadataInput, before: Record<string, string>): Record<string, string> {
  const all = replace ? pairs : { ...before, ...pairs };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null));
}
