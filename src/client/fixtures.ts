import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { Client } from "./client.ts";

/** A client of a server with the test's handler. */
export async function clientOf(t: TestContext, answer: RequestListener, retries = 0): Promise<Client> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return new Client({ base_url: `http://127.0.0.1:${port}`, token: "t", retries });
}
