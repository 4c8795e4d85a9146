/** The hosts' channel and a replication node, with credentials that were stolen, ran out, or are for something else. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { type ConnectionOptions, connect, getCACertificates, setDefaultCACertificates } from "node:tls";
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { Channel, listenForPeers } from "#hosts/channel.ts";
import { selfSigned } from "#proxy/x509.ts";
import { startNode } from "../src/replication/commands.ts";
import { type Credentials, sha256 } from "../src/replication/credentials/credentials.ts";
import { MachineIdentity } from "../src/replication/credentials/machine-identity.ts";
import { SharedKey } from "../src/replication/credentials/shared-key.ts";
import { REPLICATION_LIMITS } from "../src/replication/limits.ts";
import { tempDir } from "./support.ts";

const PURPOSE = "channel between hosts";
const LOOPBACK = { host: "127.0.0.1", port: 0 };

async function openChannel(t: TestContext): Promise<{ sealer: Sealer; port: number; address: string }> {
  const sealer = new Sealer(randomBytes(32));
  const calls = { ping: async () => "pong" };
  const door = await listenForPeers({
    listen: LOOPBACK,
    sealer,
    calls,
    streams: {},
    clock: systemClock,
    log: silentLog,
  });
  t.after(() => door.close());
  return { sealer, address: door.address, port: Number(door.address.split(":").at(-1)) };
}

/** The status of a call by hand; what the handshake failed with when it did. */
async function call(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    ...options,
  });
  let answer = "";
  return await new Promise((resolve) => {
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on("close", () => resolve(answer));
    socket.on("data", (chunk) => {
      answer += chunk.toString();
      socket.destroy();
    });
    socket.write("POST /ping HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}");
  });
}

suite("channel between hosts", () => {
  test("the channel accepts only holders of this platform's key", async (t) => {
    const { sealer, port } = await openChannel(t);
    const psk = (key: Buffer, identity = "hangar") => ({
      pskCallback: () => ({ identity, psk: key }),
      ciphers: "TLS_AES_128_GCM_SHA256",
    });
    const { key, chain: cert } = selfSigned(["host.internal"], systemClock.now());
    const attacks: Record<string, ConnectionOptions> = {
      "no key": {},
      "a certificate of its own": { key, cert },
      "another platform's key": psk(new Sealer(randomBytes(32)).derive(PURPOSE)),
      "the same key for another purpose": psk(sealer.derive("memory of suspended machines")),
      "another name": psk(sealer.derive(PURPOSE), "root"),
      "part of the key": psk(sealer.derive(PURPOSE).subarray(0, 16)),
      "an older protocol": {
        ...psk(sealer.derive(PURPOSE)),
        ciphers: "PSK",
        minVersion: "TLSv1.2",
        maxVersion: "TLSv1.2",
      },
    };
    for (const [name, options] of Object.entries(attacks))
      assert.doesNotMatch(await call(port, options), /HTTP|pong/, name);
    assert.match(await call(port, psk(sealer.derive(PURPOSE))), /^HTTP\/1\.1 200 /);
  });

  test("the channel does not connect to a server with a valid certificate instead of the key", async (t) => {
    const { key, chain: cert } = selfSigned(["localhost"], systemClock.now());
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, cert]);
    t.after(() => setDefaultCACertificates(before));
    const asked: string[] = [];
    const impostor = createHttps({ key, cert }, (request, response) => {
      asked.push(request.url ?? "");
      response.end('{"result":"pong"}');
    });
    await once(impostor.listen(0, "127.0.0.1"), "listening");
    t.after(() => {
      impostor.closeAllConnections();
      impostor.close();
    });
    const { port } = impostor.address() as AddressInfo;
    const trusting = await fetch(`https://localhost:${port}/`);
    assert.equal(trusting.status, 200, "a client that goes by certificates is taken in");
    asked.length = 0;
    const channel = new Channel(new Sealer(randomBytes(32)), systemClock);
    t.after(() => channel.close());
    await assert.rejects(channel.call(`localhost:${port}`, "exec", { command: ["secret"] }), {
      code: "host_unreachable",
    });
    assert.deepEqual(asked, [], "it heard nothing");
  });
});

/** A node on a real port, and a request to it by hand. */
async function aNode(t: TestContext, credentials: Credentials) {
  const parts = {
    dir: tempDir(),
    ...LOOPBACK,
    election: { kind: "primary" } as const,
    credentials,
    clock: systemClock,
  };
  const node = await startNode({ ...parts, log: () => {}, onFailure: () => {} });
  t.after(() => node.close());
  return async (path: string, headers: Record<string, string>, body = "{}"): Promise<number> => {
    const response = await fetch(node.url + path, { method: "POST", body, headers });
    await response.body?.cancel();
    return response.status;
  };
}

const POSITIONS = '{"databases":{}}';
const signedBy = async (credentials: Credentials, now_ms = systemClock.now(), path = "/positions") =>
  (await credentials.sign({ method: "POST", path, body_sha256: sha256(POSITIONS) }, now_ms)).headers;

suite("credentials of a replication node", () => {
  test("with a shared key: unsigned, foreign, expired, replayed and borrowed signatures are 401", async (t) => {
    const key = new SharedKey("cluster");
    const ask = await aNode(t, key);
    const old = systemClock.now() - REPLICATION_LIMITS.signature_age_ms - 1000;
    const good = await signedBy(key);
    assert.equal(await ask("/positions", good, POSITIONS), 200);
    const attacks: Record<string, [Record<string, string>, string?, string?]> = {
      unsigned: [{}],
      "of another cluster": [await signedBy(new SharedKey("other"))],
      expired: [await signedBy(key, old)],
      "from the future": [await signedBy(key, 2 * systemClock.now() - old)],
      replayed: [good],
      "for another path": [await signedBy(key, undefined, "/promote")],
      "for another body": [await signedBy(key), '{"databases":{"a":1}}'],
      "for another query": [await signedBy(key), POSITIONS, "/positions?force=true"],
    };
    for (const [name, [headers, body = POSITIONS, path = "/positions"]] of Object.entries(attacks))
      assert.equal(await ask(path, headers, body), 401, name);
    for (const path of ["/promote", "/handoff", "/stream", "/place", "/import?name=x"])
      assert.equal(await ask(path, {}), 401, path);
  });

  test("with machine identities: expired, foreign and forged tokens, and those of other apps, are 401", async (t) => {
    const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
    const foreign = await generateKeyPair("ES256");
    const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256", use: "sig" };
    const server = createHttp((_request, response) => response.end(JSON.stringify({ keys: [jwk] })));
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close());
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const spki = await exportSPKI(publicKey);
    const claims = (sub: string, aud: string, age_s: number) => {
      const iat = Math.floor(systemClock.now() / 1000) - age_s;
      return { sub, aud, iss: issuer, iat, exp: iat + 60 };
    };
    const es256 =
      (sub: string, { age_s = 0, by = privateKey } = {}) =>
      (aud: string): Promise<string> =>
        new SignJWT(claims(sub, aud, age_s)).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(by);
    const node = (mint: (aud: string) => Promise<string>): MachineIdentity =>
      new MachineIdentity({ issuer, jwks_url: `${issuer}/jwks`, subject: "acme:db:*", mint });
    const ask = await aNode(t, node(es256("acme:db:m1")));
    assert.equal(await ask("/positions", await signedBy(node(es256("acme:db:m2"))), POSITIONS), 200);
    const attacks: Record<string, (aud: string) => Promise<string>> = {
      expired: es256("acme:db:m2", { age_s: 600 }),
      "of another issuer's key": es256("acme:db:m2", { by: foreign.privateKey }),
      "of another app": es256("acme:web:m2"),
      "of another organization": es256("evil:db:m2"),
      "of a name that only begins so": es256("acme:db:m2:more"),
      "for another audience": () => es256("acme:db:m2")("https://sts.example"),
      "without a signature": async (aud) => new UnsecuredJWT(claims("acme:db:m2", aud, 0)).encode(),
      "signed with the public key": (aud) =>
        new SignJWT(claims("acme:db:m2", aud, 0))
          .setProtectedHeader({ alg: "HS256", kid: "k1" })
          .sign(Buffer.from(spki)),
    };
    for (const [name, mint] of Object.entries(attacks))
      assert.equal(await ask("/positions", await signedBy(node(mint)), POSITIONS), 401, name);
  });
});
