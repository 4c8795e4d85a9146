/** Files that the edge proxy serves itself, from real layers; from a real bucket in test/system. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { linkSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import { dirname, join } from "node:path";
import { text as read } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { tempDir } from "../../../../test/support.ts";
import { aBackend, aPlane, aTarget, type TestPlane } from "../../fixtures.ts";
import type { PortOptions } from "../../table.ts";
import { LayerTree } from "./layer-tree.ts";

/** A folder with files; a value that begins with `->` is a link. */
function layer(files: Record<string, string>): string {
  const dir = tempDir();
  for (const [path, content] of Object.entries(files)) {
    const file = join(dir, path);
    mkdirSync(dirname(file), { recursive: true });
    if (content.startsWith("->")) symlinkSync(content.slice(2), file);
    else writeFileSync(file, content);
    if (!content.startsWith("->")) utimesSync(file, 1_700_000_000, 1_700_000_000);
  }
  return dir;
}

interface Site {
  listener: TestPlane;
  get(path: string, headers?: Record<string, string>, method?: string): Promise<Got>;
}

interface Got {
  status: number;
  text: string;
  headers: IncomingHttpHeaders;
}

/** An app whose /static is the folder /public of two layers; its machine answers everything else. */
async function site(t: TestContext, options: Partial<PortOptions> = {}): Promise<Site> {
  const backend = await aBackend(t, (headers, response) => response.end(`machine: ${headers.method} ${headers.url}`));
  const lower = layer({ "public/a.txt": "lower a", "public/old/x.txt": "old x", "public/b.css": "b {}", secret: "s" });
  const upper = layer({
    "public/a.txt": "upper a",
    "public/old/y.txt": "new y",
    "public/long.txt": "0123456789".repeat(1000),
    "public/out": "->../../../../secret",
    "public/etc": "->/etc/passwd",
    "public/inside": "->/public/old/../a.txt",
    "public/loop": "->loop",
    "public/empty.js": "",
  });
  const layers = [
    { dir: upper, opaque: ["/public/old"] },
    { dir: lower, opaque: [] },
  ];
  const listener = await aPlane(t);
  const statics = [
    { prefix: "/static/", source: { kind: "layers" as const, layers, path: "/public" }, index: undefined },
  ];
  await listener.serve({ app: { statics }, targets: [aTarget(backend.port)], options });
  const get: Site["get"] = async (path, headers = {}, method = "GET") => {
    const at = {
      port: listener.port,
      path,
      method,
      headers: { host: "web.localhost", ...headers },
      agent: false as const,
    };
    const [answer] = (await once(request(at).end(), "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 0, text: await read(answer), headers: answer.headers };
  };
  return { listener, get };
}

suite("static files of the edge proxy", () => {
  test("the top layer wins, an opaque folder hides lower layers, and missing files reach the machine", async (t) => {
    const { get } = await site(t);
    const { status, text, headers } = await get("/static/a.txt?v=1");
    assert.deepEqual([status, text, headers["content-type"]], [200, "upper a", "text/plain; charset=utf-8"]);
    assert.match(String(headers["svc-request-id"]), /./);
    assert.equal((await get("/static/b.css")).headers["content-type"], "text/css; charset=utf-8");
    assert.equal((await get("/static/old/y.txt")).text, "new y");
    assert.equal((await get("/static/empty.js")).headers["content-length"], "0");
    for (const path of ["/static/old/x.txt", "/static/none", "/static", "/static/old", "/staticky", "/static/a.txt/b"])
      assert.equal((await get(path)).text, `machine: GET ${path}`);
    assert.equal((await get("/static/a.txt", {}, "DELETE")).text, "machine: DELETE /static/a.txt");
  });

  test("static file paths and links cannot leave the image", async (t) => {
    const { get } = await site(t);
    assert.equal((await get("/static/inside")).text, "upper a");
    // `..` above the root is the root, as in a machine; the secret of the image itself may be linked to.
    assert.equal((await get("/static/out")).text, "s");
    const ways = ["/static/etc", "/static/loop", "/static/../secret", "/static/%2e%2e/secret", "/static/..%2fsecret"];
    for (const path of [...ways, "/static/%00", "/static//a.txt", "/static/%5c..%5csecret", "/static/%ff"])
      assert.equal((await get(path)).text, `machine: GET ${path}`, path);
  });

  test("conditional and range requests work for static files", async (t) => {
    const { get } = await site(t);
    const { headers, text } = await get("/static/long.txt");
    assert.equal(text.length, 10_000);
    const etag = String(headers.etag);
    const modified = String(headers["last-modified"]);
    const cases: [Record<string, string>, number, string, string?][] = [
      [{ "if-none-match": `"x", W/${etag}` }, 304, ""],
      [{ "if-none-match": `"x"`, "if-modified-since": modified }, 200, text],
      [{ "if-modified-since": modified }, 304, ""],
      [{ "if-modified-since": "Mon, 01 Jan 2001 00:00:00 GMT" }, 200, text],
      [{ range: "bytes=0-3" }, 206, "0123", "bytes 0-3/10000"],
      [{ range: "bytes=9998-" }, 206, "89", "bytes 9998-9999/10000"],
      [{ range: "bytes=-3" }, 206, "789", "bytes 9997-9999/10000"],
      [{ range: "bytes=9999-20000" }, 206, "9", "bytes 9999-9999/10000"],
      [{ range: "bytes=10000-" }, 416, "", "bytes */10000"],
      [{ range: "bytes=5-2" }, 200, text],
      [{ range: "bytes=0-1,3-4" }, 200, text],
      [{ range: "bytes=0-3", "if-range": etag }, 206, "0123", "bytes 0-3/10000"],
      [{ range: "bytes=0-3", "if-range": '"other"' }, 200, text],
    ];
    for (const [headers, status, body, range] of cases) {
      const got = await get("/static/long.txt", headers);
      assert.deepEqual(
        [got.status, got.text, got.headers["content-range"]],
        [status, body, range],
        JSON.stringify(headers),
      );
    }
    const head = await get("/static/long.txt", {}, "HEAD");
    assert.deepEqual([head.text, head.headers["content-length"]], ["", "10000"]);
  });

  test("static files are served compressed, and over HTTP/2", async (t) => {
    const { get, listener } = await site(t, { compress: true });
    const at = {
      port: listener.port,
      path: "/static/long.txt",
      headers: { host: "web.localhost", "accept-encoding": "br" },
    };
    const [answer] = (await once(request({ ...at, agent: false }).end(), "response")) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    assert.equal(brotliDecompressSync(Buffer.concat(parts)).length, 10_000);
    assert.equal((await get("/static/long.txt")).headers["content-encoding"], undefined);

    const secure = await site(t, { tls: true });
    const session = connect(`https://127.0.0.1:${secure.listener.port}`, { rejectUnauthorized: false });
    t.after(() => session.destroy());
    const fetchText = (path: string): Promise<string> =>
      read(session.request({ ":path": path, ":authority": "web.localhost" }));
    assert.equal(await fetchText("/static/a.txt"), "upper a");
    assert.equal(await fetchText("/static/none"), "machine: GET /static/none");
  });

  test("links and hard links work in folders that several layers share", async () => {
    const lower = layer({ "usr/share/x/one": "1", srv: "->usr/share" });
    const upper = layer({ "usr/share/x/two": "2" });
    linkSync(join(upper, "usr/share/x/two"), join(upper, "usr/share/x/three"));
    const tree = new LayerTree([
      { dir: upper, opaque: [] },
      { dir: lower, opaque: [] },
    ]);
    assert.equal((await tree.find("/srv/x/one"))?.file, join(lower, "usr/share/x/one"));
    assert.equal((await tree.find("srv/x/three"))?.file, join(upper, "usr/share/x/three"));
    assert.equal(await tree.find("/srv/x"), undefined);
  });
});
