import type { Grown } from "#volumes/scheduler.ts";
import type { MachineWriter } from "./writer.ts";

/** Records the automatic growth of a volume as an event of its machine, which may need a restart to see it. */
export async function volumeGrew(writer: MachineWriter, { volume, size_gb, needs_restart }: Grown): Promise<void> {
  const { id, attached_machine_id } = volume;
  if (attached_machine_id === null) return;
  const grew = `volume ${id} grew from ${volume.size_gb} to ${size_gb} GB`;
  const reason = needs_restart ? `${grew}; restart the machine to use it` : grew;
  await writer.change(attached_machine_id, (transaction) => {
    const { state } = transaction.machine;
    if (state === "destroyed") return false;
    transaction.recordEvent("volume_extended", state, "host", { reason, volume: id, size_gb, needs_restart });
    return true;
  });
}
