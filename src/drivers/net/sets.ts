/** Adds and removes elements of nftables sets by netlink, which is cheaper than running a program for each machine. */
import { CallError } from "../linux/calls.ts";
import { attribute, type Message, sendMessages } from "../linux/netlink.ts";

/** A set element: concatenated values, such as device and address. */
export interface Element {
  family: keyof typeof FAMILY;
  set: string;
  key: readonly Uint8Array[];
  /** End of a range that begins with `key`. */
  last?: readonly Uint8Array[];
  /** Expires after this. */
  timeout_ms?: number;
}

const FAMILY = { inet: 1, bridge: 7 } as const;
const NFTABLES = 10;
const TYPE = { begin: 16, end: 17, add: (NFTABLES << 8) | 12, remove: (NFTABLES << 8) | 14 };
const FLAG_CREATE = 0x400;
const LIST = { table: 1, set: 2, elements: 3 };
const ITEM = 1;
const ELEMENT_KEY = 1;
const ELEMENT_TIMEOUT = 4;
const ELEMENT_LAST = 10;
const DATA_VALUE = 1;
const DEVICE_BYTES = 16;

/** A device's name as sets hold it. */
export const deviceKey = (name: string): Buffer => Buffer.concat([Buffer.from(name)], DEVICE_BYTES);

/** Adds or removes an element. An existing or missing one is no error. */
export function tellElement(verb: "add" | "remove", table: string, element: Element): void {
  try {
    together([change(verb, table, element)]);
  } catch (thrown) {
    if (verb === "remove" && thrown instanceof CallError && thrown.code === "ENOENT") return;
    throw thrown;
  }
}

/** Adds an element or restarts its timeout, in one transaction, so that it is never missing. */
export function renewElement(table: string, element: Element): void {
  together((["add", "remove", "add"] as const).map((verb) => change(verb, table, element)));
}

function together(changes: readonly Message[]): void {
  const around = (type: number): Message => ({ what: "change", type, body: head(0, NFTABLES), answered: false });
  sendMessages("netfilter", [around(TYPE.begin), ...changes, around(TYPE.end)]);
}

function change(verb: "add" | "remove", table: string, { family, set, key, last, timeout_ms }: Element): Message {
  const data = (values: readonly Uint8Array[]): Buffer[] => [attribute(DATA_VALUE, Buffer.concat(values))];
  const timed = verb === "add" && timeout_ms !== undefined;
  const parts = [
    attribute(ELEMENT_KEY, data(key)),
    ...(timed ? [attribute(ELEMENT_TIMEOUT, milliseconds(timeout_ms))] : []),
    ...(last ? [attribute(ELEMENT_LAST, data(last))] : []),
  ];
  const body = [
    attribute(LIST.table, table),
    attribute(LIST.set, set),
    attribute(LIST.elements, [attribute(ITEM, parts)]),
  ];
  return {
    what: `element of ${table} ${set}`,
    type: TYPE[verb],
    flags: verb === "add" ? FLAG_CREATE : 0,
    body: Buffer.concat([head(FAMILY[family], 0), ...body]),
  };
}

function milliseconds(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(Math.round(value)));
  return bytes;
}

/** Family, version, and a number in network byte order. */
const head = (family: number, number: number): Buffer => Buffer.of(family, 0, number >> 8, number & 255);
