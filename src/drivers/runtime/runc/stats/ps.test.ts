import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { listeners, listenersByInode, sockets } from "./ps.ts";

test("listening sockets are found while a process closes files", {
  skip: process.platform === "linux" ? false : "the kernel is not Linux",
}, async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  // Our own list of open files has the list itself in it, which is closed when it has been read.
  const found = sockets(process.pid).flatMap((inode) => listenersByInode(process.pid).get(inode)?.address ?? []);
  const address = server.address();
  assert.ok(address && typeof address === "object");
  assert.ok(found.includes(`127.0.0.1:${address.port}`), found.join(" "));
});

test("listening sockets are listed with their address family, connected ones are not", {
  skip: process.platform === "linux" ? false : "the kernel is not Linux",
}, async (t) => {
  const listening = async (host: string): Promise<number> => {
    const server = createServer().listen(0, host);
    t.after(() => server.close());
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const ports = [await listening("0.0.0.0"), await listening("::1"), await listening("::ffff:127.0.0.1")];
  const datagrams = createSocket("udp4").bind(0, "127.0.0.1");
  const client = createSocket("udp4");
  t.after(() => [datagrams, client].map((socket) => socket.close()));
  await once(datagrams, "listening");
  client.connect(datagrams.address().port, "127.0.0.1");
  await once(client, "connect");
  const found = listeners(process.pid).map(({ proto, address }) => `${proto} ${address}`);
  const there = [`0.0.0.0:${ports[0]}`, `[::1]:${ports[1]}`, `127.0.0.1:${ports[2]}`].map(
    (address) => `tcp ${address}`,
  );
  for (const one of [...there, `udp 127.0.0.1:${datagrams.address().port}`])
    assert.ok(found.includes(one), `${one} in ${found.join(", ")}`);
  assert.ok(!found.includes(`udp 127.0.0.1:${client.address().port}`));
});
