/**
 * A hostile registry at a public address, in a network of the test's own where such addresses lead to servers of the test:
 * what it names as its token service, or redirects to, is a metadata service, this box, or a private registry.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, isIP } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { ApiError } from "#core/errors.ts";
import type { Lookup } from "#core/public-addresses.ts";
import { digestOf } from "#drivers/images/blobs.ts";
import { file, makeImage, NEVER, openStore, tar } from "#drivers/images/fixtures.ts";
import { testRegistry } from "#drivers/images/registry/fixtures.ts";
import { selfSigned } from "#proxy/x509.ts";
import { ownNetwork } from "./own-network.ts";

const PUBLIC = "93.184.216.34";
const METADATA = "169.254.169.254";
const NAME = "registry.hostile.example";
const { chain, key } = selfSigned([NAME], Date.now());
const image = makeImage([tar(file("app", "run me"))]);

type Answer = { status: number; headers?: Record<string, string>; body?: Buffer | string };

async function listening(t: TestContext, server: Server, address: string): Promise<number> {
  server.listen(0, address);
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A registry with TLS at the public address; `lead` answers before it does. */
async function hostile(t: TestContext) {
  setDefaultCACertificates([...getCACertificates("default"), chain]);
  const own = { lead: undefined as ((path: string) => Answer | undefined) | undefined, seen: [] as string[] };
  const blobs = new Map(image.blobs).set(image.digest, image.manifest);
  const server = createTlsServer({ cert: chain, key }, ({ url = "", headers }, response) => {
    own.seen.push(headers.authorization ?? "");
    const path = url.split("?")[0] ?? "";
    const which = path.endsWith("/manifests/1") ? digestOf(image.manifest) : (path.split("/").at(-1) ?? "");
    const served: Answer = blobs.has(which) ? { status: 200, body: blobs.get(which) ?? "" } : { status: 404 };
    const { status, headers: more = {}, body = "" } = own.lead?.(path) ?? served;
    response.writeHead(status, more).end(body);
  });
  const port = await listening(t, server, PUBLIC);
  return Object.assign(own, { host: `${NAME}:${port}` });
}

/** What must never be asked by the platform. */
async function insideServer(t: TestContext, address: string): Promise<{ origin: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    asked.push(url);
    response.end('{"token":"the key of this box"}');
  });
  server.on("connection", () => asked.push("connection"));
  return { origin: `http://${address}:${await listening(t, server, address)}`, asked };
}

/** The hostile name changes its address on command. */
function names(): { lookup: Lookup; address: string } {
  const state = { lookup: undefined as unknown as Lookup, address: PUBLIC };
  state.lookup = (host, _options, done) => {
    const address = host === NAME ? state.address : host === "localhost" ? "127.0.0.1" : undefined;
    if (address === undefined) return done(Object.assign(new Error(host), { code: "ENOTFOUND" }), []);
    done(null, [{ address, family: isIP(address) }]);
  };
  return state;
}

const networked = await ownNetwork(import.meta.filename);
const skip =
  process.env["HANGAR_TEST_INSIDE"] !== "1"
    ? "a network namespace cannot be made here"
    : [PUBLIC, METADATA].every((ip) => spawnSync("ip", ["addr", "add", `${ip}/32`, "dev", "lo"]).status === 0)
      ? false
      : "addresses cannot be added here";

if (networked)
  suite("hostile registry at a public address", { skip }, () => {
    test("token service, redirects and DNS of a hostile registry reach no private address", async (t) => {
      const registry = await hostile(t);
      const metadata = await insideServer(t, METADATA);
      const loopback = await insideServer(t, "127.0.0.1");
      const named = await testRegistry(t);
      const dns = names();
      const images = await openStore(t, { allow_private: [named.host], lookup: dns.lookup, limits: { retry_ms: 1 } });
      const resolve = (tag: string) => images.resolve(`${registry.host}/web:${tag}`, "org", NEVER);
      const leads = [metadata.origin, loopback.origin, `http://${named.host}`].flatMap((origin) =>
        [origin, origin.replace("http:", "https:")].flatMap((to): Answer[] => [
          { status: 401, headers: { "www-authenticate": `Bearer realm="${to}/token",service="x"` } },
          { status: 307, headers: { location: `${to}/latest` } },
        ]),
      );
      for (const lead of leads) {
        registry.lead = () => lead;
        const thrown = await resolve("1").then(
          () => assert.fail("it worked"),
          (error: unknown) => error as ApiError,
        );
        // Plain HTTP is not followed at all; what is private is told as that, without a setting that would not help.
        const plain = /"http:|^http:/.test(Object.values(lead.headers ?? {})[0] ?? "");
        assert.equal(thrown.code, plain ? "image_refused" : "address_refused", thrown.message);
        assert.doesNotMatch(thrown.extras.hint ?? "", /ALLOW_PRIVATE/);
      }
      registry.lead = undefined;
      for (const address of ["127.0.0.1", METADATA, "10.0.0.1"]) {
        dns.address = address;
        await images.close();
        const fresh = await openStore(t, { allow_private: [named.host], lookup: dns.lookup });
        await assert.rejects(fresh.resolve(`${registry.host}/web:1`, "org", NEVER), { code: "address_refused" });
      }
      assert.deepEqual([metadata.asked, loopback.asked, named.seen], [[], [], []]);
      assert.ok(registry.seen.length >= leads.length);
      assert.deepEqual(new Set(registry.seen), new Set([""]), "no token was sent to it");
    });

    test("the registry works otherwise: TLS, tokens and layers", async (t) => {
      const registry = await hostile(t);
      const images = await openStore(t, { lookup: names().lookup });
      const tokens = `https://${registry.host}/token`;
      registry.lead = (path) => {
        if (path === "/token") return { status: 200, body: '{"token":"own"}' };
        if (registry.seen.at(-1) === "Bearer own") return undefined;
        return { status: 401, headers: { "www-authenticate": `Bearer realm="${tokens}"` } };
      };
      const ref = await images.resolve(`${registry.host}/web:1`, "org", NEVER);
      assert.equal((await images.hold({ id: "m", org_id: "org" }, ref, NEVER)).layers.length, 1);
    });
  });
