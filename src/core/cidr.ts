/** Parses address ranges: `10.0.0.0/8`, `fd00::/8`, or one address. */
import { isIPv4, isIPv6 } from "node:net";

export interface Cidr {
  family: 4 | 6;
  first: bigint;
  last: bigint;
  /** In the notation of nftables. */
  text: string;
}

const BITS = { 4: 32, 6: 128 } as const;

/** Parses a range; undefined when invalid. Host bits are cleared. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = "", length, ...rest] = text.split("/");
  const family = isIPv4(address) ? 4 : isIPv6(address) && !address.includes("%") ? 6 : undefined;
  if (family === undefined || rest.length > 0 || (length !== undefined && !/^\d{1,3}$/.test(length))) return undefined;
  const bits = BITS[family];
  const prefix = length === undefined ? bits : Number(length);
  if (prefix > bits) return undefined;
  const size = 1n << BigInt(bits - prefix);
  const first = (numberOf(address, family) / size) * size;
  const shown = prefix === bits ? addressText(first, family) : `${addressText(first, family)}/${prefix}`;
  return { family, first, last: first + size - 1n, text: shown };
}

export const isInside = (inner: Cidr, outer: Cidr): boolean =>
  inner.family === outer.family && inner.first >= outer.first && inner.last <= outer.last;

function numberOf(address: string, family: 4 | 6): bigint {
  if (family === 4) return address.split(".").reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const four = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address);
  const low = four ? numberOf(four[2] ?? "", 4) : 0n;
  const text = four ? `${four[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}` : address;
  const [left = "", right] = text.split("::");
  const groups = (part: string): string[] => (part === "" ? [] : part.split(":"));
  const [head, tail] = [groups(left), groups(right ?? "")];
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...zeros, ...tail].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

function addressText(value: bigint, family: 4 | 6): string {
  const [parts, bits] = family === 4 ? [4, 8n] : [8, 16n];
  const groups = Array.from(
    { length: parts },
    (_, n) => (value >> (bits * BigInt(parts - 1 - n))) & ((1n << bits) - 1n),
  );
  if (family === 4) return groups.join(".");
  // Omits the first of the longest runs of zeros (RFC 5952).
  const text = groups.map((group) => group.toString(16)).join(":");
  const runs = [...text.matchAll(/(?<![^:])0(:0)+(?![^:])/g)].sort((a, b) => b[0].length - a[0].length);
  const run = runs[0];
  if (!run) return text;
  const left = text.slice(0, run.index).replace(/:$/, "");
  return `${left}::${text.slice(run.index + run[0].length).replace(/^:/, "")}`;
}
