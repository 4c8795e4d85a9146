/** Netlink messages for devices, addresses and routes. */
import { readFileSync } from "node:fs";
import { addressBytes } from "#network/bytes.ts";
import { attribute, type Message, sendMessages } from "../linux/netlink.ts";

const TYPE = { newLink: 16, deleteLink: 17, newAddress: 20, newRoute: 24 };
const FLAG = { replace: 0x100, exclusive: 0x200, create: 0x400 };
const AF = { ipv4: 2, ipv6: 10 };
const IFF_UP = 1;
/** Attributes of a link, and of what kind it is. */
const LINK = { address: 1, name: 3, master: 10, info: 18, netns: 28 };
const INFO = { kind: 1, data: 2 };
const BRIDGE_MCAST_SNOOPING = 23;
const VETH_PEER = 1;
const ADDRESS = { address: 1, local: 2, flags: 8 };
const ADDRESS_NODAD = 2;
const ROUTE = { destination: 1, device: 4, gateway: 5 };
const TABLE_MAIN = 254;
const PROTOCOL_BOOT = 3;
const SCOPE = { universe: 0, link: 253 };
const UNICAST = 1;

/** A device by name or index. */
type Device = string | number;

export interface Address {
  /** Such as `fdaa::2/48`. */
  net: string;
  device: number;
}

/** A new bridge. */
export const addBridge = (name: string, address: string): Message =>
  link(`bridge ${name}`, FLAG.create | FLAG.exclusive, [
    attribute(LINK.name, name),
    attribute(LINK.address, hardwareBytes(address)),
    attribute(LINK.info, [
      attribute(INFO.kind, "bridge"),
      attribute(INFO.data, [attribute(BRIDGE_MCAST_SNOOPING, Buffer.of(0))]),
    ]),
  ]);

/** Creates a veth pair: one end here, with its own index, the other in the network namespace of descriptor `netns`. */
export const addCable = (
  here: { name: string; address: string; number: number },
  there: { name: string; address: string; netns: number },
): Message =>
  link(
    `cable ${there.name}`,
    FLAG.create | FLAG.exclusive,
    [
      attribute(LINK.name, here.name),
      attribute(LINK.address, hardwareBytes(here.address)),
      attribute(LINK.info, [
        attribute(INFO.kind, "veth"),
        attribute(INFO.data, [
          attribute(
            VETH_PEER,
            Buffer.concat([
              linkBody(0, 0),
              attribute(LINK.name, there.name),
              attribute(LINK.address, hardwareBytes(there.address)),
              attribute(LINK.netns, there.netns),
            ]),
          ),
        ]),
      ]),
    ],
    here.number,
  );

/** Attaches a device to a bridge, or detaches it. */
export const setMaster = (name: string, bridge: number | undefined): Message =>
  link(`${name} on its bridge`, 0, [attribute(LINK.name, name), attribute(LINK.master, bridge ?? 0)]);

export const setUp = (device: Device): Message => ({
  what: `${device} up`,
  type: TYPE.newLink,
  body: Buffer.concat([
    linkBody(typeof device === "number" ? device : 0, IFF_UP),
    ...(typeof device === "string" ? [attribute(LINK.name, device)] : []),
  ]),
});

export const deleteLink = (name: string): Message => ({
  what: `without ${name}`,
  type: TYPE.deleteLink,
  body: Buffer.concat([linkBody(0, 0), attribute(LINK.name, name)]),
});

/** Without duplicate address detection: addresses are derived from ids. */
export function addAddress({ net, device }: Address, scope: keyof typeof SCOPE = "universe"): Message {
  const [text = "", length = ""] = net.split("/");
  const address = addressBytes(text);
  const family = familyOf(address);
  const head = Buffer.of(family, Number(length), 0, SCOPE[scope], 0, 0, 0, 0);
  head.writeUInt32LE(device, 4);
  return {
    what: `address ${net}`,
    type: TYPE.newAddress,
    flags: FLAG.create | FLAG.replace,
    body: Buffer.concat([
      head,
      attribute(ADDRESS.local, address),
      attribute(ADDRESS.address, address),
      ...(family === AF.ipv6 ? [attribute(ADDRESS.flags, ADDRESS_NODAD)] : []),
    ]),
  };
}

/** Adds a route to `net` (undefined: default) via a neighbour or a device. */
export function addRoute(net: string | undefined, to: { gateway?: string; device: number }): Message {
  const [text, length = "0"] = net?.split("/") ?? [];
  const destination = text === undefined ? undefined : addressBytes(text);
  const gateway = to.gateway === undefined ? undefined : addressBytes(to.gateway);
  const family = familyOf(destination ?? gateway ?? Buffer.alloc(4));
  const scope = gateway ? SCOPE.universe : SCOPE.link;
  const head = Buffer.of(family, Number(length), 0, 0, TABLE_MAIN, PROTOCOL_BOOT, scope, UNICAST, 0, 0, 0, 0);
  return {
    what: `route to ${net ?? "everywhere"}`,
    type: TYPE.newRoute,
    flags: FLAG.create | FLAG.replace,
    body: Buffer.concat([
      head,
      ...(destination ? [attribute(ROUTE.destination, destination)] : []),
      ...(gateway ? [attribute(ROUTE.gateway, gateway)] : []),
      attribute(ROUTE.device, to.device),
    ]),
  };
}

/** Sends all messages to the kernel. */
export const tellLinks = (messages: readonly Message[]): void => sendMessages("route", messages);

/** A device's index; undefined when it does not exist. */
export function numberOf(device: string): number | undefined {
  try {
    return Number(readFileSync(`/sys/class/net/${device}/ifindex`, "utf8"));
  } catch {
    return undefined;
  }
}

function link(what: string, flags: number, attributes: readonly Buffer[], number = 0): Message {
  return { what, type: TYPE.newLink, flags, body: Buffer.concat([linkBody(number, 0), ...attributes]) };
}

/** struct ifinfomsg: family, type, index, flags and change mask. */
function linkBody(number: number, flags: number): Buffer {
  const body = Buffer.alloc(16);
  body.writeInt32LE(number, 4);
  body.writeUInt32LE(flags, 8);
  body.writeUInt32LE(flags, 12);
  return body;
}

const familyOf = (address: Uint8Array): number => (address.length === 4 ? AF.ipv4 : AF.ipv6);

const hardwareBytes = (text: string): Buffer => Buffer.from(text.replaceAll(":", ""), "hex");
