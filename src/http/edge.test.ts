/** The HTTP server over real sockets: which requests are refused, how fast, and with which error. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { type TestPlatform, testPlatform } from "../../test/platform.ts";

function open(platform: TestPlatform): Socket {
  const { hostname, port } = new URL(platform.base_url);
  return connect(Number(port), hostname);
}

/** Sends bytes as they are, and reads until the server closes. */
async function raw(platform: TestPlatform, bytes: string): Promise<string> {
  const socket = open(platform);
  socket.write(bytes);
  return await text(socket);
}

const AUTH = (platform: TestPlatform): string => `Authorization: Bearer ${platform.token}\r\n`;
const HEAD = "Host: h\r\nConnection: close\r\n";

suite("framing (P1)", () => {
  test("requests with ambiguous framing are refused, each with our error body and a request id", async (t) => {
    const platform = await testPlatform(t);
    const post = `POST /v1/apps HTTP/1.1\r\n${HEAD}${AUTH(platform)}`;
    const probes: Record<string, string> = {
      "two Host headers": `GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`,
      "no Host header": "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
      "absolute target": `GET http://h/healthz HTTP/1.1\r\n${HEAD}\r\n`,
      "backslash in the target": `GET /v1\\orgs HTTP/1.1\r\n${HEAD}\r\n`,
      "# in the target": `GET /healthz#x HTTP/1.1\r\n${HEAD}\r\n`,
      "Transfer-Encoding: gzip, chunked": `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      "Transfer-Encoding: Chunked": `${post}Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n`,
      "two Transfer-Encodings": `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "Transfer-Encoding on HTTP/1.0": `POST /v1/apps HTTP/1.0\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "GET with a body": `GET /healthz HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}`,
      "length and encoding": `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "two lengths": `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `,
      "negative length": `${post}Content-Length: -1\r\n\r\n`,
      "length with a plus": `${post}Content-Length: +2\r\n\r\n{}`,
      "bare line feeds": "GET /healthz HTTP/1.1\nHost: h\n\n",
      "folded header": `GET /healthz HTTP/1.1\r\n${HEAD}X: a\r\n b\r\n\r\n`,
      "space before the colon": `GET /healthz HTTP/1.1\r\n${HEAD}X : a\r\n\r\n`,
      "NUL in a header": `GET /healthz HTTP/1.1\r\n${HEAD}X: a\0b\r\n\r\n`,
      "bad chunk size": `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
      "not HTTP at all": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    };
    for (const [name, bytes] of Object.entries(probes)) {
      const answer = await raw(platform, bytes);
      assert.match(answer, /^HTTP\/1\.1 400 /, `${name}: ${answer.slice(0, 100)}`);
      assert.match(answer, /svc-request-id: [0-9A-Z]{26}/i, name);
      assert.match(answer, /"status":"malformed_http"/, name);
      assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1, `${name}: one answer`);
    }
  });

  test("headers over 16 KiB, a target over 8 KiB and a path with a broken escape have their own errors", async (t) => {
    const platform = await testPlatform(t);
    assert.match(
      await raw(platform, `GET /healthz HTTP/1.1\r\n${HEAD}X: ${"a".repeat(17_000)}\r\n\r\n`),
      /^HTTP\/1\.1 431 .*headers_too_large/s,
    );
    // An unknown path, and resource names that are too long.
    for (const path of ["/", "/v1/apps/", "/v1/apps/a/machines/", "/v1/gateway/", "/assets/", "/oidc/"])
      for (const length of [9_000, 15_000])
        assert.match(
          await raw(platform, `GET ${path}${"a".repeat(length)} HTTP/1.1\r\n${HEAD}${AUTH(platform)}\r\n`),
          /^HTTP\/1\.1 414 .*uri_too_long/s,
          `${path} ${length}`,
        );
    assert.match(
      await raw(platform, `GET /v1/apps/%zz HTTP/1.1\r\n${HEAD}${AUTH(platform)}\r\n`),
      /^HTTP\/1\.1 400 .*percent-encoding/s,
    );
  });
});

suite("bodies (P3)", () => {
  test("invalid JSON, duplicate keys and deep nesting are refused with the position; __proto__ is only a name", async (t) => {
    const { ask } = await testPlatform(t);
    const cases: [string, RegExp][] = [
      ['{"app_name": "x",\n  oops}', /not JSON \(line 2, column 3\)/],
      ['{"app_name":"a","app_name":"b"}', /"app_name" occurs twice/],
      ['{"app_name":"a","app\\u005fname":"b"}', /"app_name" occurs twice/],
      [`{"x":${"[".repeat(70)}${"]".repeat(70)}}`, /nested deeper than 64/],
    ];
    for (const [body, message] of cases) {
      const answer = await ask("POST /v1/apps", { body });
      assert.deepEqual([answer.status, answer.body.status], [400, "malformed_json"], body.slice(0, 40));
      assert.match(answer.body.error, message);
    }
    const odd = await ask("POST /v1/apps", { body: '{"__proto__":{"app_name":"x"},"constructor":1}' });
    assert.equal(odd.body.details[0].path, "body.app_name");
    assert.equal(({} as Record<string, unknown>)["app_name"], undefined);
  });

  test("a secret in a malformed body is not repeated in the response", async (t) => {
    const { ask } = await testPlatform(t);
    assert.ok(
      !(await ask("POST /v1/apps/x/secrets", { body: '{"values":{"A":"canary-123" oops' })).text.includes("canary"),
    );
  });

  test("a body over the limit is 413 before it is read; other media types are 415, curl's default is JSON", async (t) => {
    const platform = await testPlatform(t);
    for (const [path, limit] of [
      ["/v1/apps", "body_bytes allows (1048576 bytes)"],
      ["/v1/apps/web/machines", "config_bytes allows (8388608 bytes)"],
    ]) {
      const announced = await raw(
        platform,
        `POST ${path} HTTP/1.1\r\n${HEAD}${AUTH(platform)}Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n`,
      );
      assert.match(announced, /^HTTP\/1\.1 413 .*payload_too_large/s);
      assert.ok(announced.includes(`the limit ${limit}`), announced);
    }
    const xml = await platform.ask("POST /v1/apps", { body: "<x/>", headers: { "content-type": "application/xml" } });
    assert.deepEqual([xml.status, xml.body.status], [415, "unsupported_media_type"]);
    const curl = await platform.ask("POST /v1/apps", {
      body: '{"app_name":"web"}',
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    assert.equal(curl.status, 201);
  });
});

suite("HTTP server", () => {
  test("unknown paths are 404, unknown methods 405; HEAD works; trailing slashes do not matter", async (t) => {
    const { ask } = await testPlatform(t);
    assert.equal((await ask("GET /nowhere")).body.status, "not_found");
    const method = await ask("PUT /v1/orgs");
    assert.deepEqual([method.status, method.headers["allow"]], [405, "GET, POST"]);
    assert.equal((await ask("GET /v1/orgs/")).status, 200);
    assert.deepEqual([(await ask("HEAD /healthz")).status, (await ask("HEAD /healthz")).text], [200, ""]);
    assert.equal((await ask(`GET /v1/apps/${"a".repeat(300)}`)).status, 404);
  });

  test("a stopping platform finishes requests in progress and accepts no new ones", async (t) => {
    const platform = await testPlatform(t);
    const socket = open(platform);
    const expect = "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n";
    socket.write(`POST /v1/apps HTTP/1.1\r\nHost: h\r\n${AUTH(platform)}${expect}`);
    const [interim] = (await once(socket, "data")) as [Buffer];
    assert.match(interim.toString(), /^HTTP\/1\.1 100 /, "the request is begun, and its body still missing");
    const idle = open(platform).on("error", () => {});
    await once(idle, "connect");
    const closing = platform.close();
    const idleGone = once(idle, "close");
    socket.write('{"app_name":"web"}');
    assert.match(await text(socket), /HTTP\/1\.1 201 /);
    await Promise.all([closing, idleGone]);
    await assert.rejects(fetch(platform.base_url));
  });

  test("requests over a token's rate limit are 429 with Retry-After", async (t) => {
    const { ask } = await testPlatform(t, { HANGAR_RATE_LIMIT: "3" });
    const statuses = [];
    for (let i = 0; i < 5; i++) statuses.push((await ask("GET /v1/orgs")).status);
    assert.deepEqual(statuses.slice(0, 3), [200, 200, 200]);
    const refused = await ask("GET /v1/orgs");
    assert.deepEqual(
      [refused.status, refused.headers["retry-after"], refused.headers["x-ratelimit-limit"]],
      [429, "1", "3"],
    );
  });

  test("the pages load nothing from other origins", async (t) => {
    const { ask } = await testPlatform(t);
    for (const path of ["/", "/docs"]) {
      const page = await ask(`GET ${path}`, { token: null });
      assert.match(String(page.headers["content-security-policy"]), /default-src 'none'/);
      assert.doesNotMatch(page.text, /(src|href)="https?:/);
      assert.match(page.text, /<title>Hangar/);
    }
  });
});
