import type { Socket } from "node:net";
import { messageOf } from "#core/assert.ts";
import { dialed, Endpoint } from "#core/dial.ts";
import { fail } from "#core/errors.ts";
import { unreachableReason } from "#core/listening.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { ipv4Of, type MachineRecord } from "./record.ts";
import { listeners } from "./stats/ps.ts";

/** Connects from this host to a port of a machine, at whichever of its two addresses answers. */
export async function connectTo(
  record: MachineRecord & { pid: number },
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  const { id, private_ip: host, pid } = record;
  const endpoint = new Endpoint({ host, ipv4: ipv4Of(record), port });
  const options = { timeout_ms: MACHINE_LIMITS.tunnel_connect_ms, allowHalfOpen: true, noDelay: true, signal };
  return await dialed(endpoint, options).catch((thrown: unknown) => {
    signal.throwIfAborted();
    const reason = unreachableReason(listeners(pid), { proto: "tcp", port }) ?? messageOf(thrown);
    return fail("port_unreachable", `machine ${id}: ${reason}`, { cause: thrown });
  });
}
