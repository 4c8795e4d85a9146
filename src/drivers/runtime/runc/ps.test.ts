import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { listeners, sockets } from "./ps.ts";

test("sockets of a process that closes a file just then are found all the same", {
  skip: process.platform !== "linux",
}, async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  // Our own list of open files has the list itself in it, which is closed when it has been read.
  const found = sockets(process.pid).flatMap((inode) => listeners(process.pid).get(inode)?.address ?? []);
  const address = server.address();
  assert.ok(address && typeof address === "object");
  assert.ok(found.includes(`127.0.0.1:${address.port}`), found.join(" "));
});
