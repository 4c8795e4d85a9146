/**
 * The least a proxy on Node's sockets can do: `pipe.ts PLAIN_PORT TLS_PORT UPSTREAM_PORT CERT KEY`. It passes on what comes,
 * each connection to one of its own, and reads none of it.
 */
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";

const [plain = "0", tls = "0", upstream = "0", cert = "", key = ""] = process.argv.slice(2);

function pass(client: Socket): void {
  client.setNoDelay(true);
  const server = connect({ port: Number(upstream), host: "127.0.0.1", noDelay: true });
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on("data", (data) => to.write(data)).on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  }
}

createServer(pass).listen(Number(plain), "127.0.0.1");
createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, pass).listen(Number(tls), "127.0.0.1");
