import type { Grown } from "#volumes/upkeep.ts";
import type { Ledger } from "./ledger.ts";

/** A volume that has grown by itself is an event of the machine that mounts it, which may have to be restarted for it. */
export async function volumeGrew(ledger: Ledger, { volume, size_gb, needs_restart }: Grown): Promise<void> {
  const { id, attached_machine_id } = volume;
  if (attached_machine_id === null) return;
  const grew = `volume ${id} grew from ${volume.size_gb} to ${size_gb} GB`;
  const reason = needs_restart ? `${grew}; restart the machine to use it` : grew;
  await ledger.change(attached_machine_id, (draft) => {
    const { state } = draft.machine;
    if (state === "destroyed") return false;
    draft.note("volume_extended", state, "host", { reason, volume: id, size_gb, needs_restart });
    return true;
  });
}
