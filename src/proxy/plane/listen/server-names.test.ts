/** Which app answers a server name (SNI) or host name, and with which certificate. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { aBackend, aPlane, aTarget, type TestPlane } from "../../fixtures.ts";
import type { AppTable, PortOptions } from "../../table.ts";
import { selfSigned } from "../../x509.ts";

/** An app over TLS, whose machine responds with its app's name. */
async function serve(
  t: TestContext,
  proxy: TestPlane,
  app: Partial<AppTable> & { app_name: string },
  options: Partial<PortOptions> = {},
): Promise<void> {
  const { port } = await aBackend(t, (_request, response) => response.end(app.app_name));
  const names = { app_id: app.app_name, hostnames: [`${app.app_name}.localhost`], ...app };
  await proxy.serve({ app: names, options: { tls: true, ...options }, targets: [aTarget(port)] });
}

/** Sends a request over TLS; returns the response and the names in the server's certificate. */
async function send(
  { port }: TestPlane,
  { sni, host = sni ?? "127.0.0.1", ...tls }: { sni?: string; host?: string } & ConnectionOptions = {},
): Promise<{ status: string; body: string; names: string }> {
  const name = sni === undefined ? {} : { servername: sni };
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...name, ...tls });
  await once(socket, "secureConnect");
  const names = socket.getPeerCertificate().subjectaltname ?? "";
  socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  const answer = await text(socket);
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  return { status: head.split(" ")[1] ?? "", body, names };
}

const SELF_SIGNED = "DNS:localhost";
const bodyOf = async (proxy: TestPlane, request: Parameters<typeof send>[1]): Promise<string> => {
  const { status, body } = await send(proxy, request);
  return status === "200" ? body.replace(/^\d+\r\n|\r\n0\r\n$/g, "").trim() : status;
};

suite("a port of a single app", () => {
  for (const version of ["TLSv1.2", "TLSv1.3"] as const)
    test(`any server name or none is served, with the self-signed certificate (${version})`, async (t) => {
      const proxy = await aPlane(t);
      await serve(t, proxy, { app_name: "web" });
      for (const sni of [undefined, "web.localhost", "other.localhost", "localhost", "shop.example.com"]) {
        const answer = await send(proxy, { ...(sni ? { sni } : {}), minVersion: version, maxVersion: version });
        assert.deepEqual([answer.status, answer.names, /web/.test(answer.body)], ["200", SELF_SIGNED, true], sni);
      }
    });

  test("plain HTTP is served for any host name, too", async (t) => {
    const proxy = await aPlane(t);
    await serve(t, proxy, { app_name: "web" }, { tls: false });
    for (const host of ["127.0.0.1", "localhost", "other.localhost", "shop.example.com"])
      assert.match(await proxy.raw(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`), / 200 .*web/s);
  });

  test("an app's certificate is served for its own name, and another app's for none", async (t) => {
    const proxy = await aPlane(t);
    const certificates = ["www.example.com", "other.example.com"].map((name) => ({
      ...selfSigned([name], Date.now()),
      hostnames: [name],
    }));
    proxy.plane.apply({ type: "certificates", certificates });
    const app = { app_name: "web", hostnames: ["web.localhost", "www.example.com"] };
    for (const self_signed of [false, true]) {
      await serve(t, proxy, app, { self_signed });
      assert.equal((await send(proxy, { sni: "www.example.com" })).names, "DNS:www.example.com");
      assert.equal((await send(proxy, { sni: "other.example.com" })).names, SELF_SIGNED);
    }
  });
});

suite("a shared TLS port", () => {
  test("a wildcard does not match reserved names, on ports of other apps either", async (t) => {
    const proxy = await aPlane(t);
    const reserved = ["bob.example.com"];
    const hostnames = ["*.example.com"];
    const certificate = { ...selfSigned(hostnames, Date.now()), hostnames, reserved };
    proxy.plane.apply({ type: "certificates", certificates: [certificate] });
    await serve(t, proxy, { app_name: "one", hostnames, reserved });
    await serve(t, proxy, { app_name: "two" });
    assert.equal(await bodyOf(proxy, { sni: "any.example.com" }), "one");
    assert.equal((await send(proxy, { sni: "any.example.com" })).names, "DNS:*.example.com");
    await assert.rejects(send(proxy, { sni: "bob.example.com" }), { code: "ERR_SSL_TLSV1_UNRECOGNIZED_NAME" });
    assert.equal(await bodyOf(proxy, { sni: "any.example.com", host: "bob.example.com" }), "404");
    await serve(t, proxy, { app_name: "three", hostnames: ["bob.example.com"] });
    assert.deepEqual(
      (await send(proxy, { sni: "bob.example.com" })).names,
      SELF_SIGNED,
      "nor is its certificate shown",
    );
  });

  test("an unknown server name is refused with the alert unrecognized_name", async (t) => {
    const proxy = await aPlane(t);
    await serve(t, proxy, { app_name: "one" });
    await serve(t, proxy, { app_name: "two" });
    for (const sni of ["three.localhost", undefined])
      await assert.rejects(send(proxy, sni ? { sni } : {}), { code: "ERR_SSL_TLSV1_UNRECOGNIZED_NAME" });
    assert.equal(await bodyOf(proxy, { sni: "two.localhost" }), "two");
    proxy.plane.apply({ type: "no app", app_id: "two" });
    assert.equal(await bodyOf(proxy, { sni: "three.localhost" }), "one", "it has the port alone now");
  });

  test("an app with default_self_signed serves the names that no app has", async (t) => {
    const proxy = await aPlane(t);
    await serve(t, proxy, { app_name: "one", since: 1 });
    await serve(t, proxy, { app_name: "two", since: 2 }, { self_signed: true });
    for (const sni of ["three.localhost", "shop.example.com"]) {
      assert.equal((await send(proxy, { sni })).names, SELF_SIGNED);
      assert.equal(await bodyOf(proxy, { sni }), "two");
    }
    assert.equal(await bodyOf(proxy, {}), "two", "without a name");
    assert.equal(await bodyOf(proxy, { sni: "one.localhost" }), "one");
    assert.equal(await bodyOf(proxy, { sni: "three.localhost", host: "one.localhost" }), "421", "another app's host");
    assert.equal(await bodyOf(proxy, { sni: "one.localhost", host: "three.localhost" }), "421");
  });

  test("of several apps with default_self_signed the oldest serves, in any order of arrival", async (t) => {
    const proxy = await aPlane(t);
    for (const [app_name, since] of [
      ["c", 3],
      ["b", 2],
      ["a", 2],
    ] as const)
      await serve(t, proxy, { app_name, since }, { self_signed: true });
    assert.equal(await bodyOf(proxy, { sni: "nobody.example.com" }), "a");
    proxy.plane.apply({ type: "no app", app_id: "a" });
    assert.equal(await bodyOf(proxy, { sni: "nobody.example.com" }), "b");
  });
});
