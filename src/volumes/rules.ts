/** Validation errors of volumes. */
import { fail } from "#core/errors.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import type { Inserted } from "./store.ts";
import type { Volume } from "./types.ts";

export function bad(path: string, problem: string, allowed?: string): never {
  fail("invalid_request", `${path} ${problem}`, { details: [{ path, problem, ...(allowed ? { allowed } : {}) }] });
}

export function refuseName(name: string): void {
  if (/^[a-zA-Z0-9_-]+$/.test(name) && name.length <= VOLUME_LIMITS.name_chars) return;
  bad("body.name", "is not a name", `1 to ${VOLUME_LIMITS.name_chars} letters, digits, underscores and dashes`);
}

export function refuseInsert(result: Exclude<Inserted, "inserted" | "exists" | "zone_taken">, app_name: string): never {
  switch (result) {
    case "no_app":
      return fail("not_found", `Could not find App ${JSON.stringify(app_name)}`);
    case "no_source":
      return fail("not_found", "the source of the volume was deleted in the meantime");
    case "limit":
      return fail(
        "limit_reached",
        `an organization has at most ${VOLUME_LIMITS.volumes_per_org} volumes (limit volumes_per_org)`,
      );
  }
}

export function refuseShrinking({ id, size_gb }: Volume, wanted: number): void {
  if (wanted >= size_gb) return;
  bad("body.size_gb", `must be at least ${size_gb}: volume ${id} has ${size_gb} GB, and a volume cannot get smaller`);
}

export function refuseAttached({ id, attached_machine_id }: Volume): void {
  if (attached_machine_id === null) return;
  fail("volume_in_use", `volume ${id} is mounted by machine ${attached_machine_id}`, {
    facts: { attached_machine_id },
    hint: `destroy the machine first: hangar machines destroy ${attached_machine_id}`,
  });
}

export function refuseState({ id, state }: Volume, fine: boolean, verb: string): void {
  if (fine) return;
  if (state === "destroyed")
    fail("not_found", `volume not found: ${id} is deleted`, { hint: `hangar volumes undelete ${id}` });
  fail("volume_not_ready", `volume ${id} cannot be ${verb} while it is ${state}`, { retry_after_s: 1 });
}
