/**
 * Netlink client: configures networks by messages to a kernel socket (header, body, attributes). `ip` and `nft` do the
 * same, but each call costs a process.
 */
import { closeSync } from "node:fs";
import { CallError, call } from "./calls.ts";

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const PROTOCOL = { route: 0, netfilter: 12 } as const;

const HEADER_BYTES = 16;
const ANSWER_BYTES = 32_768;
const NLMSG_ERROR = 2;
const FLAG_REQUEST = 1;
const FLAG_ACK = 4;

const socket = call("socket", ["int", "int", "int"]);
const send = call("send", ["int", "void *", "size_t", "int"]);
const recv = call("recv", ["int", "void *", "size_t", "int"]);

/** One request. `what` is its description for errors. */
export interface Message {
  what: string;
  type: number;
  flags?: number;
  body: Uint8Array;
  /** Whether the kernel acknowledges it. */
  answered?: boolean;
}

/** Encodes messages, numbered from 1. */
export function packed(messages: readonly Message[]): Buffer {
  return Buffer.concat(
    messages.map(({ type, flags = 0, body, answered = true }, index) => {
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt32LE(HEADER_BYTES + body.length, 0);
      header.writeUInt16LE(type, 4);
      header.writeUInt16LE(flags | FLAG_REQUEST | (answered ? FLAG_ACK : 0), 6);
      header.writeUInt32LE(index + 1, 8);
      return padded(Buffer.concat([header, body]));
    }),
  );
}

/** Sends all in order, even after a failure; then throws the first error. */
export function sendMessages(protocol: keyof typeof PROTOCOL, messages: readonly Message[]): void {
  const fd = socket("netlink", AF_NETLINK, SOCK_RAW_CLOEXEC, PROTOCOL[protocol]);
  try {
    const bytes = packed(messages);
    send("netlink", fd, bytes, bytes.length, 0);
    // The kernel has processed them, and the acknowledgements are ready.
    const wanted = messages.filter(({ answered = true }) => answered).length;
    const failed = answersOf(fd, wanted).find(({ errno }) => errno !== 0);
    if (failed) throw new CallError("network:", messages[failed.number - 1]?.what ?? "", failed.errno);
  } finally {
    closeSync(fd);
  }
}

interface Answer {
  number: number;
  errno: number;
}

function answersOf(fd: number, wanted: number): Answer[] {
  const found: Answer[] = [];
  const buffer = Buffer.alloc(ANSWER_BYTES);
  while (found.length < wanted) {
    const length = recv("netlink", fd, buffer, buffer.length, 0);
    for (let at = 0; at < length; ) {
      const size = buffer.readUInt32LE(at);
      if (buffer.readUInt16LE(at + 4) === NLMSG_ERROR) {
        found.push({ number: buffer.readUInt32LE(at + 8), errno: -buffer.readInt32LE(at + HEADER_BYTES) });
      }
      at += Math.max(HEADER_BYTES, (size + 3) & ~3);
    }
  }
  return found;
}

const NESTED = 0x8000;

/** An attribute: number, text, bytes, or nested attributes. */
export function attribute(type: number, value: number | string | Uint8Array | readonly Buffer[]): Buffer {
  const nested = Array.isArray(value);
  const payload = bytesOf(value);
  const head = Buffer.alloc(4);
  head.writeUInt16LE(4 + payload.length, 0);
  head.writeUInt16LE(nested ? type | NESTED : type, 2);
  return padded(Buffer.concat([head, payload]));
}

function bytesOf(value: number | string | Uint8Array | readonly Buffer[]): Uint8Array {
  if (typeof value === "string") return Buffer.from(`${value}\0`);
  if (value instanceof Uint8Array) return value;
  if (typeof value !== "number") return Buffer.concat(value);
  const four = Buffer.alloc(4);
  four.writeUInt32LE(value);
  return four;
}

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
