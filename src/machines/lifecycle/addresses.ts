/** IPv4 addresses of machines that run already, and were started by a version that did not write them down. */
import type { RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";
import { refOf } from "./phases.ts";
import type { MachineWriter } from "./writer.ts";

interface Parts {
  host_ids: readonly string[];
  store: Pick<MachineStore, "alive">;
  driver: Pick<RuntimeDriver, "recover">;
  writer: Pick<MachineWriter, "change">;
}

/** Reads missing IPv4 addresses from the driver and stores them. */
export async function learnAddresses({ host_ids, store, driver, writer }: Parts): Promise<void> {
  const unknown = (await store.alive(host_ids)).filter(
    ({ state, private_ipv4 }) => state === "started" && private_ipv4 === null,
  );
  const refs = unknown.flatMap((machine) => refOf(machine) ?? []);
  if (refs.length === 0) return;
  const wanted = new Set(refs.map(({ id, boot }) => `${id} ${boot}`));
  for (const { id, boot, private_ipv4 } of await driver.recover(refs)) {
    if (private_ipv4 === undefined || !wanted.has(`${id} ${boot}`)) continue;
    await writer.change(id, (transaction) => {
      if (transaction.machine.boot !== boot || transaction.machine.state !== "started") return false;
      transaction.set({ private_ipv4 });
      return true;
    });
  }
}
