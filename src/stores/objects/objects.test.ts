import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { objectStoreSuite } from "#core/objects.suite.ts";
import { scoped } from "#core/objects.ts";
import { type S3Server, s3Missing, startS3 } from "../../../test/s3.ts";
import { tempDir } from "../../../test/support.ts";
import { LocalObjects } from "./local.ts";
import { S3Objects } from "./s3.ts";

objectStoreSuite("a folder", { open: async () => new LocalObjects(tempDir()) });

objectStoreSuite("a part of a folder", {
  open: async () => {
    const whole = new LocalObjects(tempDir());
    await whole.put("other/a/1", Buffer.from("somebody else's"));
    return scoped(whole, "own/part/");
  },
});

let server: Promise<S3Server> | undefined;
let stores = 0;
after(async () => await (await server)?.stop());

suite("a bucket", () => {
  test("whether it honours conditions is asked again after it could not be asked", async (t) => {
    const kept = new Set<string>();
    let broken = true;
    const server = createServer((request, response) => {
      const taken = request.method === "PUT" && kept.has(request.url ?? "");
      if (request.method === "PUT" && !broken) kept.add(request.url ?? "");
      request.resume().on("end", () => response.writeHead(broken ? 500 : taken ? 412 : 200).end());
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close().closeAllConnections());
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket`;
    const place = { endpoint, prefix: "", region: "local", access_key: "key", secret_key: "secret" };
    const store = new S3Objects(place, systemClock);
    const put = (): Promise<boolean> => store.put("a", Buffer.from("1"), { if_absent: true });
    await assert.rejects(put());
    broken = false;
    assert.deepEqual([await put(), await put()], [true, false]);
  });
});

objectStoreSuite("s3rver", {
  skip: s3Missing(),
  // This server ignores the condition; that it is found out is what is tested with it.
  unconditional: /does not honour If-None-Match/,
  async open() {
    server ??= startS3(tempDir());
    return new S3Objects({ ...(await server), prefix: `store-${++stores}/` }, systemClock);
  },
});
