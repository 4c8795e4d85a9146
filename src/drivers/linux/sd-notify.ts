/**
 * Notifies the service manager by the protocol of sd_notify(3): a datagram to the socket in `NOTIFY_SOCKET`. Node has
 * no datagrams over Unix sockets.
 */
import { closeSync } from "node:fs";
import { call } from "./calls.ts";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL_DONTWAIT = 0x4000 | 0x40;
/** The kernel's limit, `sun_path` of struct sockaddr_un. */
const PATH_BYTES = 108;

const socket = call("socket", ["int", "int", "int"]);
const connect = call("connect", ["int", "void *", "int"]);
const send = call("send", ["int", "void *", "size_t", "int"]);

/** Sends one message, such as `READY=1`. Throws on failure. */
export function sdNotify(address: string, message: string): void {
  const to = socketAddress(address);
  const fd = socket(address, AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  try {
    connect(address, fd, to, to.length);
    const bytes = Buffer.from(message);
    send(address, fd, bytes, bytes.length, MSG_NOSIGNAL_DONTWAIT);
  } finally {
    closeSync(fd);
  }
}

/** `@name` is an abstract socket: its name begins with a zero byte. */
function socketAddress(address: string): Buffer {
  const path = Buffer.from(address.startsWith("@") ? `\0${address.slice(1)}` : address);
  if (path.length >= PATH_BYTES || !/^[/@]/.test(address)) throw new Error(`${address} is not the address of a socket`);
  const family = Buffer.alloc(2);
  family.writeUInt16LE(AF_UNIX);
  return Buffer.concat([family, path]);
}
