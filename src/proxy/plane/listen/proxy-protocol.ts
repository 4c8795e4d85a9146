import { isIPv6 } from "node:net";
import { addressBytes } from "#network/bytes.ts";
import type { Peer } from "../header-rewrite.ts";

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

/** Builds a PROXY protocol header (version 1 or 2), which gives a machine the client's address. */
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
  // Version 2 and command PROXY (0x21), then family and STREAM.
  const fixed = Buffer.from([0x21, six ? 0x21 : 0x11, 0, addresses.length]);
  return Buffer.concat([SIGNATURE, fixed, addresses]);
}

const mapped = (address: string): string => (isIPv6(address) ? address : `::ffff:${address}`);
