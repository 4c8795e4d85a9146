import { isIPv6 } from "node:net";
import type { Peer } from "./passage.ts";

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

/** What tells a machine who is at the other end of a raw connection (the PROXY protocol, version 1 or 2). */
export function proxyHeader(version: 1 | 2, peer: Peer): Buffer {
  const six = isIPv6(peer.address) || isIPv6(peer.local_address);
  const source = six ? mapped(peer.address) : peer.address;
  const destination = six ? mapped(peer.local_address) : peer.local_address;
  if (version === 1) {
    const line = `PROXY TCP${six ? 6 : 4} ${source} ${destination} ${peer.port} ${peer.local_port}\r\n`;
    return Buffer.from(line, "latin1");
  }
  const bytes = six ? 16 : 4;
  const addresses = Buffer.alloc(2 * bytes + 4);
  addresses.set(addressBytes(source), 0);
  addresses.set(addressBytes(destination), bytes);
  addresses.writeUInt16BE(peer.port, 2 * bytes);
  addresses.writeUInt16BE(peer.local_port, 2 * bytes + 2);
  // Version 2 and "proxied" (0x21), then the family and "stream".
  const fixed = Buffer.from([0x21, six ? 0x21 : 0x11, 0, addresses.length]);
  return Buffer.concat([SIGNATURE, fixed, addresses]);
}

const mapped = (address: string): string => (isIPv6(address) ? address : `::ffff:${address}`);

/** An address as bytes in the order of the network. */
export function addressBytes(address: string): Uint8Array {
  if (!isIPv6(address)) return Uint8Array.from(address.split(".").map(Number));
  const plain = address.split("%")[0] ?? "";
  const four = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const text = four
    ? `${four[1]}${((Number(four[2]) << 8) | Number(four[3])).toString(16)}:${((Number(four[4]) << 8) | Number(four[5])).toString(16)}`
    : plain;
  const [left = "", right] = text.split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const [head, tail] = [groups(left), right === undefined ? [] : groups(right)];
  const all = [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255]));
}
