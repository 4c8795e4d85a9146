import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, suite, type TestContext, test } from "node:test";
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

suite("S3 bucket", () => {
  test("the check for conditional writes is repeated after it failed", async (t) => {
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

suite("a bucket that refuses", () => {
  const serve = async (t: TestContext, handle: (method: string, url: string) => [number, string]) => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      const { method = "", url = "" } = request;
      requests.push(`${method} ${url}`);
      const [status, body] = handle(method, url);
      request.resume().on("end", () => response.writeHead(status).end(body));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close().closeAllConnections());
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket`;
    const place = { endpoint, prefix: "", region: "local", access_key: "key", secret_key: "secret" };
    return { store: new S3Objects(place, systemClock), requests };
  };

  test("an upload with a refused part is aborted, with the server's reason", async (t) => {
    const { store, requests } = await serve(t, (method, url) => {
      if (url.endsWith("?uploads=")) return [200, "<R><UploadId>u/1</UploadId></R>"];
      if (url.includes("partNumber=2&")) return [403, "<Error><Code>QuotaExceeded</Code></Error>"];
      return [method === "DELETE" ? 204 : 200, ""];
    });
    const file = join(tempDir(), "large");
    writeFileSync(file, Buffer.alloc(17 << 20));
    await assert.rejects(store.put("large", { file }), /could not put large: HTTP 403 QuotaExceeded/);
    assert.equal(requests.at(-1), "DELETE /bucket/large?uploadId=u%2F1");
  });

  test("parts that the server could not join are an error, although its status is 200", async (t) => {
    const { store } = await serve(t, (method, url) => {
      if (url.endsWith("?uploads=")) return [200, "<R><UploadId>u</UploadId></R>"];
      return [200, method === "POST" ? "<Error><Code>InternalError</Code><Message>try later</Message></Error>" : ""];
    });
    const file = join(tempDir(), "large");
    writeFileSync(file, Buffer.alloc(17 << 20));
    await assert.rejects(store.put("large", { file }), /try later/);
  });

  test("an object that the server does not delete is an error", async (t) => {
    const refusal = "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>";
    const { store } = await serve(t, () => [200, refusal]);
    await assert.rejects(store.delete(["a"]), /could not delete 1 objects: .*AccessDenied/);
  });
});

objectStoreSuite("s3rver", {
  skip: s3Missing(),
  // This server ignores the condition; the test checks that the store detects it.
  unconditional: /does not honour If-None-Match/,
  async open() {
    server ??= startS3(tempDir());
    return new S3Objects({ ...(await server), prefix: `store-${++stores}/` }, systemClock);
  },
});
