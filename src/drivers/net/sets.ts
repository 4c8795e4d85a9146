/** Elements of nftables' sets, put in and taken out by netlink: one machine more or less is no reason to run a program. */
import { CallError } from "../linux/calls.ts";
import { attribute, type Message, tell } from "../linux/netlink.ts";

/** What a set holds: values one after the other, such as a device and an address. */
export interface Element {
  family: keyof typeof FAMILY;
  set: string;
  key: readonly Uint8Array[];
  /** The last of a range that begins with `key`. */
  last?: readonly Uint8Array[];
}

const FAMILY = { inet: 1, bridge: 7 } as const;
const NFTABLES = 10;
const TYPE = { begin: 16, end: 17, add: (NFTABLES << 8) | 12, remove: (NFTABLES << 8) | 14 };
const FLAG_CREATE = 0x400;
const LIST = { table: 1, set: 2, elements: 3 };
const ITEM = 1;
const ELEMENT_KEY = 1;
const ELEMENT_LAST = 10;
const DATA_VALUE = 1;
const DEVICE_BYTES = 16;

/** A device's name as sets hold it. */
export const deviceKey = (name: string): Buffer => Buffer.concat([Buffer.from(name)], DEVICE_BYTES);

/** Puts an element into its set, or takes it out. What is in already stays, and what is not there need not go. */
export function tellElement(verb: "add" | "remove", table: string, { family, set, key, last }: Element): void {
  const data = (values: readonly Uint8Array[]): Buffer[] => [attribute(DATA_VALUE, Buffer.concat(values))];
  const bounds = [attribute(ELEMENT_KEY, data(key)), ...(last ? [attribute(ELEMENT_LAST, data(last))] : [])];
  const element = attribute(ITEM, bounds);
  const body = [attribute(LIST.table, table), attribute(LIST.set, set), attribute(LIST.elements, [element])];
  const change: Message = {
    what: `element of ${table} ${set}`,
    type: TYPE[verb],
    flags: verb === "add" ? FLAG_CREATE : 0,
    body: Buffer.concat([head(FAMILY[family], 0), ...body]),
  };
  const around = (type: number): Message => ({ what: "change", type, body: head(0, NFTABLES), answered: false });
  try {
    tell("netfilter", [around(TYPE.begin), change, around(TYPE.end)]);
  } catch (thrown) {
    if (verb === "remove" && thrown instanceof CallError && thrown.code === "ENOENT") return;
    throw thrown;
  }
}

/** Family, version, and a number in the order of bytes that networks have. */
const head = (family: number, number: number): Buffer => Buffer.of(family, 0, number >> 8, number & 255);
