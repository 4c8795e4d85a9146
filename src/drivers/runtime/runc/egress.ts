/**
 * Applies the egress policies of machines on this host: again after a restart of the platform, and when they change.
 */
import type { EgressPolicy } from "#core/egress-policy.ts";
import type { Sender } from "../../net/firewall.ts";
import type { ContainerManagerParts } from "./container-manager-parts.ts";
import type { MachineRecord } from "./record.ts";

/** The part of the container manager that is used here. */
interface Containers {
  readonly parts: Pick<ContainerManagerParts, "log" | "network">;
  read(id: string): MachineRecord | undefined;
  write(record: MachineRecord): MachineRecord;
  runs(record: MachineRecord | undefined): record is MachineRecord;
  sender(record: MachineRecord): Sender;
}

/** Ensures the rules of a machine, even if another version loaded them or the firewall was flushed. */
export async function rejoin(containers: Containers, record: MachineRecord | undefined): Promise<void> {
  if (!record || record.state === "exited") return;
  const { log, network } = containers.parts;
  await network.firewall
    .joinSender(containers.sender(record), record.egress)
    .catch((error: unknown) => log.error({ error, machine: record.id }, "a machine's firewall rules are missing"));
}

/** Applies a policy to a running machine; others get it at their next start or resume. */
export async function setEgress(containers: Containers, id: string, egress: EgressPolicy): Promise<void> {
  const record = containers.read(id);
  if (!containers.runs(record)) return;
  if (JSON.stringify(record.egress) === JSON.stringify(egress)) return;
  await containers.parts.network.firewall.joinSender(containers.sender(record), egress);
  const now = containers.read(id);
  if (now?.boot === record.boot && now.state === "running") containers.write({ ...now, egress });
}
