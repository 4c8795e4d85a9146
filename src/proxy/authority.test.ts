import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { Authority } from "./authority.ts";

/** An authority at this address, with an empty store. */
const authorityAt = (directory_url: string): Authority =>
  new Authority({
    store: {
      account: async () => undefined,
      putAccount: async () => {},
      value: async () => "",
      putValue: async () => {},
    },
    sealer: new Sealer(new Uint8Array(32)),
    clock: systemClock,
    log: silentLog,
    directory_url,
    directory_ca: undefined,
    answer: async () => {},
    records: undefined,
  });

async function answering(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`;
}

suite("certificate authority errors", () => {
  test("the reason is reported when the authority is unreachable, refuses or sends invalid responses", async (t) => {
    const closed = createServer();
    await once(closed.listen(0, "127.0.0.1"), "listening");
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    await assert.rejects(authorityAt(`http://127.0.0.1:${port}/dir`).order("a.example"), /cannot be reached: .*ECONN/);

    const problem = { type: "urn:ietf:params:acme:error:rateLimited", detail: "too many orders\nof yours" };
    const refusing = await answering(t, ({ url, method, headers }, response) => {
      const at = `http://${headers.host}`;
      response.setHeader("replay-nonce", "bm9uY2U");
      response.setHeader("content-type", "application/json");
      if (url === "/dir") response.end(JSON.stringify({ newNonce: `${at}/nonce`, newAccount: `${at}/account` }));
      else if (method === "HEAD") response.end();
      else response.writeHead(429).end(JSON.stringify(problem));
    });
    await assert.rejects(authorityAt(refusing).order("a.example"), /too many orders/);

    const nonsense = ["<html>", "null", '{"newNonce":7,"newAccount":{}}'];
    for (const body of nonsense) {
      const directory = await answering(t, (_request, response) => response.end(body));
      await assert.rejects(authorityAt(directory).order("a.example"), ({ message }: Error) => message !== "", body);
    }
    const huge = await answering(t, (_request, response) => response.end(Buffer.alloc(4 * 1024 * 1024, 32)));
    await assert.rejects(authorityAt(huge).order("a.example"), /cannot be reached: .*maxContentLength/);
  });
});
