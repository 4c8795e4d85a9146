/** Files of an app from a bucket: a real S3 server in a process of its own. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { S3Objects } from "#stores/objects/s3.ts";
import { testPlatform } from "../platform.ts";
import { s3Missing, startS3 } from "../s3.ts";
import { tempDir, until } from "../support.ts";

suite("static files from a bucket", { skip: s3Missing() }, () => {
  test("bucket objects are served; missing ones, and a bucket with the platform's own objects, are left to the machine", async (t) => {
    const s3 = await startS3(tempDir());
    t.after(() => s3.stop());
    const objects = new S3Objects({ ...s3, prefix: "site/" }, systemClock);
    await objects.put("index.html", Buffer.from("<h1>start</h1>"));
    await objects.put("docs/index.html", Buffer.from("<h1>docs</h1>"));
    await objects.put("data.txt", Buffer.from("0123456789"));
    const backend = await aBackend(t, (asked, response) => response.end(`machine: ${asked.url}`));
    const [port, closed] = [await freePort(), await freePort()];
    const start = async (env: Record<string, string>) =>
      await testPlatform(
        t,
        {
          HANGAR_STATICS_URL: new URL(s3.endpoint).origin,
          HANGAR_STATICS_ACCESS_KEY: s3.access_key,
          HANGAR_STATICS_SECRET_KEY: s3.secret_key,
          ...env,
        },
        { reach: () => ({ host: "127.0.0.1", port: backend.port }) },
      );
    const open = async (platform: Awaited<ReturnType<typeof start>>, at: number) => {
      await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
      await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
      const bucket = { guest_path: "/site", url_prefix: "/", tigris_bucket: "hangar", index_document: "index.html" };
      const ports = [{ port: at, handlers: ["http"] }];
      const config = { image: "web:1", statics: bucket, services: [{ protocol: "tcp", internal_port: 8080, ports }] };
      await platform.ask("POST /v1/apps/web/machines", { body: { config } });
      await until("the app is open", async () => {
        const answer = await fetch(`http://127.0.0.1:${at}/ready`).catch(() => undefined);
        return answer?.ok;
      });
    };
    await open(await start({}), port);
    const get = async (path: string, headers: Record<string, string> = {}, at = port) => {
      const answer = await fetch(`http://127.0.0.1:${at}${path}`, { headers });
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    };
    const first = await get("/");
    assert.deepEqual([first.text, first.headers.get("server")], ["<h1>start</h1>", "svc"]);
    assert.equal((await get("/docs/")).text, "<h1>docs</h1>");
    assert.equal((await get("/docs/index.html")).text, "<h1>docs</h1>");
    const data = await get("/data.txt");
    assert.equal(data.text, "0123456789");
    assert.equal((await get("/data.txt", { "if-none-match": data.headers.get("etag") ?? "" })).status, 304);
    const part = await get("/data.txt", { range: "bytes=2-4" });
    assert.deepEqual([part.status, part.text, part.headers.get("content-range")], [206, "234", "bytes 2-4/10"]);
    assert.equal((await get("/none.txt")).text, "machine: /none.txt");
    assert.equal((await get("/docs/none/")).text, "machine: /docs/none/");

    // Where the platform keeps its own objects in that bucket, nobody else reads it.
    const own = { HANGAR_OBJECTS_URL: `${s3.endpoint}/own`, HANGAR_OBJECTS_ACCESS_KEY: s3.access_key };
    await open(await start({ ...own, HANGAR_OBJECTS_SECRET_KEY: s3.secret_key }), closed);
    assert.equal((await get("/data.txt", {}, closed)).text, "machine: /data.txt");

    await s3.stop();
    const late = await get("/data.txt");
    assert.deepEqual([late.status, late.headers.get("svc-reason")], [502, "bucket_unreachable"]);
  });
});
