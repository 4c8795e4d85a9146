/** Describes what the programs of a machine listen on, for error messages about closed ports. */

/** An open port: `tcp` or `udp`, and an address such as `127.0.0.1:8000` or `[::]:80`. */
export interface ListenSocket {
  proto: string;
  address: string;
}

/** Addresses named in one message. */
const NAMED = 4;

/**
 * Why a machine's port is unreachable from outside, judging by its listening sockets; undefined when it is reachable. A
 * program on loopback is reachable only inside the machine.
 */
export function unreachableReason(
  sockets: readonly ListenSocket[],
  { proto, port }: { proto: string; port: number },
): string | undefined {
  const open = sockets.filter((socket) => socket.proto === proto);
  const there = open.filter(({ address }) => portOf(address) === port);
  if (there.some(({ address }) => !isLoopback(address))) return undefined;
  if (there.length > 0) {
    return `the program listens on ${listed(there)} only; let it listen on 0.0.0.0:${port} or [::]:${port}`;
  }
  if (open.length === 0) return `nothing listens on port ${port}, nor on any other ${proto} port`;
  return `nothing listens on port ${port}; the machine listens on ${listed(open)}`;
}

function listed(sockets: readonly ListenSocket[]): string {
  const all = [...new Set(sockets.map(({ address }) => address))].sort((a, b) => portOf(a) - portOf(b));
  const named = all.slice(0, NAMED);
  return all.length > NAMED ? `${named.join(", ")} and ${all.length - NAMED} more` : named.join(" and ");
}

export const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1));

const isLoopback = (address: string): boolean => /^(127\.|\[::1\])/.test(address);
