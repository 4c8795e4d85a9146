import { isIPv6 } from "node:net";

/** An address in network byte order. */
export function addressBytes(address: string): Uint8Array {
  if (!isIPv6(address)) return Uint8Array.from(address.split(".").map(Number));
  const plain = address.split("%")[0] ?? "";
  const four = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const pair = (a: string | undefined, b: string | undefined): string => ((Number(a) << 8) | Number(b)).toString(16);
  const text = four ? `${four[1]}${pair(four[2], four[3])}:${pair(four[4], four[5])}` : plain;
  const [left = "", right] = text.split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const [head, tail] = [groups(left), right === undefined ? [] : groups(right)];
  const all = [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255]));
}

/** The text of an address in network byte order. */
export const addressText = (bytes: Buffer): string =>
  bytes.length === 4 ? bytes.join(".") : groupsText(bytes.toString("hex"));

/** The private network of an address: its first 48 bits. */
export const networkOf = (address: string): string => Buffer.from(addressBytes(address)).toString("hex", 0, 6);

/** The machine part of a private address: see `privateAddress`. */
export const machineAt = (address: string): string => Buffer.from(addressBytes(address)).toString("hex", 8, 15);

/** Hex digits as groups of an IPv6 address, without leading zeros. */
export const groupsText = (hex: string): string =>
  (hex.match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, "")).join(":");
