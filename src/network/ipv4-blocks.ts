/**
 * IPv4 addresses of machines: 100.64.0.0/10 in blocks of 32768. On a platform of one process all machines are in one
 * block, which is valid on their own host only. Of several hosts each process has a block of its own, stored in
 * the store, so that the others have a route to it; the last address of a block is the process itself.
 */
export const LONE_BLOCK = 64;
const BLOCKS = 128;
const BLOCK_SIZE = 2 ** 15;
const PREFIX_LENGTH = 17;

/** Blocks available to processes of a platform with several hosts. */
export const SHARED_BLOCKS: readonly number[] = Array.from({ length: BLOCKS }, (_, n) => n).filter(
  (n) => n !== LONE_BLOCK,
);

/** The address at an index in a block. */
export function machineIpv4(block: number, index: number): string {
  const n = block * BLOCK_SIZE + index;
  return `100.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
}

/** Source address of the platform's own traffic to machines on other hosts. */
export const processIpv4 = (block: number): string => machineIpv4(block, BLOCK_SIZE - 1);

export const blockNet = (block: number): string => `${machineIpv4(block, 0)}/${PREFIX_LENGTH}`;

/** Whether other hosts have a route to this address. */
export function isRouted(ipv4: string): boolean {
  const [, second = 0, third = 0] = ipv4.split(".").map(Number);
  return (second - 64) * 2 + (third >> 7) !== LONE_BLOCK;
}
