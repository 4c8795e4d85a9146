/** What somebody with a token may not do with the registry. Each test is an attack that worked. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { digestOf, openRegistry, type RegistryClient } from "./registry-client.ts";
import { until } from "./support.ts";

async function token({ platform }: RegistryClient, org = "personal"): Promise<{ token: string; id: string }> {
  return (await platform.ask(`POST /v1/orgs/${org}/tokens`, { body: { kind: "org" } })).body;
}

async function deployToken({ platform }: RegistryClient, app_name: string): Promise<string> {
  await platform.ask("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
  return (await platform.ask(`POST /v1/apps/${app_name}/deploy_token`, { body: {} })).body.token;
}

/** A request whose body goes on without an end. */
async function dripping({ platform }: RegistryClient, method: string, path: string, login: string) {
  const { hostname, port } = new URL(platform.base_url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.on("error", () => {});
  let answer = "";
  socket.on("data", (data) => {
    answer += data.toString("latin1");
  });
  const head = [`${method} ${path} HTTP/1.1`, "host: localhost", `authorization: Bearer ${login}`];
  const type = path.startsWith("/v2") ? "application/octet-stream" : "application/x-tar";
  socket.write([...head, `content-type: ${type}`, "content-length: 1000000000", "", ""].join("\r\n"));
  const timer = setInterval(() => socket.writable && socket.write(Buffer.alloc(100)), 20);
  const ended = once(socket, "close").finally(() => clearInterval(timer));
  return { ended, answer: () => answer };
}

suite("hostile registry clients", () => {
  test("a token of one app mounts no blob of another app's repository", async (t) => {
    const client = await openRegistry(t);
    const own = await deployToken(client, "web");
    const digest = await client.pushBlob("personal/api", randomBytes(100));
    for (const from of ["&from=personal/api", ""])
      await client.expect(202, `POST /v2/personal/web/blobs/uploads/?mount=${digest}${from}`, { token: own });
    await client.refused(404, `GET /v2/personal/web/blobs/${digest}`, { token: own });
  });

  test("nothing that was pushed is a page of the platform", async (t) => {
    const client = await openRegistry(t);
    await client.pushImage("personal/web", "1");
    const { headers } = await client.expect(200, "GET /v2/personal/web/manifests/1");
    assert.equal(headers.get("content-security-policy"), "default-src 'none'; sandbox");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
  });

  test("a push ends when its token is revoked, and so does an upload of an image", async (t) => {
    const client = await openRegistry(t);
    for (const target of ["PATCH", "PUT", "POST"]) {
      const { token: login, id } = await token(client);
      const begun = await client.expect(202, "POST /v2/personal/web/blobs/uploads/", { token: login });
      const upload = begun.headers.get("location") ?? "";
      const path = target === "POST" ? "/v1/images/import?name=big:1" : upload;
      const query = target === "PUT" ? `?digest=${digestOf("x")}` : "";
      const sending = await dripping(client, target, `${path}${query}`, login);
      if (target !== "POST") {
        const received = async (): Promise<boolean> =>
          (await client.expect(204, `GET ${upload}`)).headers.get("range") !== "0-0";
        await until("some of it is there", async () => ((await received()) ? true : undefined));
      }
      await client.platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
      await sending.ended;
      assert.match(sending.answer(), /^HTTP\/1.1 401 .*revoked/s, target);
    }
  });

  test("a download ends when its token is revoked", async (t) => {
    const client = await openRegistry(t);
    const { token: login, id } = await token(client);
    const digest = await client.pushBlob("personal/web", randomBytes(40 << 20));
    const response = await client.expect(200, `GET /v2/personal/web/blobs/${digest}`, { token: login });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await client.platform.ask(`DELETE /v1/orgs/personal/tokens/${id}`);
    // A slow reader: the whole would take a minute.
    await assert.rejects(async () => {
      while (!(await reader.read()).done) await setTimeout(50);
    });
  });
});
