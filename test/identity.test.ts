/** Identity tokens: what they say, who believes them, and who may ask for one. */
import assert from "node:assert/strict";
import { createHmac, createPublicKey, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import * as jose from "jose";
import jsonwebtoken, { type JwtHeader, type SigningKeyCallback } from "jsonwebtoken";
import { JwksClient } from "jwks-rsa";
import * as oauth from "oauth4webapi";
import { discovery, allowInsecureRequests as insecureClient } from "openid-client";
import { virtualClock } from "#core/fixtures.ts";
import { CLAIMS } from "#identity/tokens.ts";
import { type Inside, inside, type Machine, overSocket } from "./inside.ts";
import { tempDir, until } from "./support.ts";

async function token(platform: Inside, machine: Machine, wish: object = {}): Promise<string> {
  const { status, text, headers } = await platform.from(machine, "POST /v1/tokens/oidc", {
    body: JSON.stringify(wish),
  });
  assert.equal(status, 200, text);
  assert.match(String(headers["content-type"]), /^text\/plain/);
  return text;
}

/** Verified by jsonwebtoken with the keys jwks-rsa fetched: third-party code. */
function believer(issuer: string): (token: string, audience: string) => Promise<jsonwebtoken.JwtPayload> {
  const client = new JwksClient({ jwksUri: `${issuer}/.well-known/jwks.json`, cache: false });
  const key = (header: JwtHeader, done: SigningKeyCallback): void => {
    client.getSigningKey(header.kid).then(
      (found) => done(null, found.getPublicKey()),
      (error: unknown) => done(error as Error),
    );
  };
  return (text, audience) =>
    new Promise((resolve, reject) => {
      const options = { algorithms: ["RS256" as const, "ES256" as const], audience, issuer };
      jsonwebtoken.verify(text, key, options, (error, claims) =>
        error ? reject(error) : resolve(claims as jsonwebtoken.JwtPayload),
      );
    });
}

suite("identity tokens", () => {
  test("tokens hold all 17 claims and are verified by independent libraries (J6)", async (t) => {
    const platform = await inside(t);
    const { body: made } = await platform.ask("POST /v1/orgs", { body: { name: "acme" } });
    await platform.ask("POST /v1/apps", { body: { app_name: "shop", org_slug: "acme" } });
    const machine = await platform.machine("till-1", { app: "shop" });
    const issuer = `${platform.base_url}/oidc/acme`;

    // Discovery as oauth4webapi and openid-client do it, letter for letter.
    const url = new URL(issuer);
    const insecure = { [oauth.allowInsecureRequests]: true };
    const server = await oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, insecure));
    assert.equal(server.issuer, issuer);
    const config = await discovery(url, "client", undefined, undefined, { execute: [insecureClient] });
    assert.equal(config.serverMetadata().jwks_uri, server.jwks_uri);

    for (const alg of ["RS256", "ES256"] as const) {
      const text = await token(platform, machine, { aud: "sts.amazonaws.com", alg });
      const claims = await believer(issuer)(text, "sts.amazonaws.com");
      assert.deepEqual(Object.keys(claims).sort(), [...CLAIMS].sort());
      assert.equal(claims.sub, "acme:shop:till-1");
      assert.equal((claims.exp ?? 0) - (claims.iat ?? 0), 600);
      assert.deepEqual([claims.nbf, claims["org_id"]], [claims.iat, made.id]);
      assert.deepEqual(
        [claims["machine_id"], claims["machine_name"], claims["org_name"]],
        [machine.id, "till-1", "acme"],
      );
      assert.deepEqual([claims["image"], claims["region"]], ["registry.example/web:1", "local"]);
      assert.match(String(claims["image_digest"]), /^sha256:/);
      const keys = jose.createRemoteJWKSet(new URL(server.jwks_uri ?? ""));
      const verified = await jose.jwtVerify(text, keys, { issuer, audience: "sts.amazonaws.com" });
      assert.equal(verified.protectedHeader.alg, alg);
    }
    const plain = jsonwebtoken.decode(await token(platform, machine)) as jsonwebtoken.JwtPayload;
    assert.equal(plain.aud, `${platform.base_url}/acme`);
  });

  test("a token request may have no body or any content type; an invalid body is 400", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    const ask = (body: string, type?: string) =>
      platform.from(machine, "POST /v1/tokens/oidc", { body, headers: type ? { "content-type": type } : {} });
    assert.equal((await ask("")).status, 200);
    assert.equal((await ask("", "application/json")).status, 200);
    assert.equal((await ask('{"aud":"x"}', "application/x-www-form-urlencoded")).status, 200);
    assert.equal((await ask('{"aud":"x"}', "application/octet-stream")).status, 200);
    for (const wrong of ["{", '{"aud":1}', '{"aud":""}', "[1]", '{"alg":"none"}', '{"alg":"HS256"}'])
      assert.equal((await ask(wrong)).status, 400, wrong);
    assert.notEqual((await ask('{"aud":"x"}')).text, (await ask('{"aud":"x"}')).text);
    // Not even by repeating a request: each token is another.
    const key = { "idempotency-key": "k" };
    const first = await platform.from(machine, "POST /v1/tokens/oidc", { headers: key });
    assert.notEqual((await platform.from(machine, "POST /v1/tokens/oidc", { headers: key })).text, first.text);
  });

  test("forged, expired and foreign tokens are rejected everywhere (J1)", async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("web-1");
    await platform.ask("POST /v1/orgs", { body: { name: "other" } });
    await platform.ask("POST /v1/apps", { body: { app_name: "theirs", org_slug: "other" } });
    const stranger = await platform.machine("web-1", { app: "theirs" });
    const audience = `${platform.base_url}/v1/gateway`;
    const issuer = `${platform.base_url}/oidc/personal`;
    const good = await token(platform, machine, { aud: audience });
    const [head = "", claims = "", signature = ""] = good.split(".");
    const payload = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
    const header = JSON.parse(Buffer.from(head, "base64url").toString()) as Record<string, unknown>;
    const b64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const { keys } = (await platform.ask("GET /oidc/personal/.well-known/jwks.json")).body as { keys: jose.JWK[] };
    const jwk = keys.find(({ kid }) => kid === header["kid"]) ?? assert.fail();
    const pem = createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" });
    const own = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const signed = (changes: object, more: object = {}) =>
      jsonwebtoken.sign({ ...payload, ...changes }, own.privateKey, {
        algorithm: "RS256",
        header: { ...header, ...more } as unknown as JwtHeader,
      });
    const hmac = `${b64({ ...header, alg: "HS256" })}.${claims}`;
    const theirs = await token(platform, stranger, { aud: audience });
    const [theirHead, theirClaims, theirSignature] = theirs.split(".");
    const forged: Record<string, string> = {
      none: `${b64({ ...header, alg: "none" })}.${claims}.`,
      "none with a signature": `${b64({ ...header, alg: "none" })}.${claims}.${signature}`,
      "HS256 with the public key": `${hmac}.${createHmac("sha256", pem).update(hmac).digest("base64url")}`,
      "another key": signed({}),
      "another key by its own name": signed({}, { kid: "mine" }),
      "a key in the header": signed({}, { jwk: own.publicKey.export({ format: "jwk" }) }),
      "a key's address in the header": signed({}, { jku: "http://127.0.0.1:9/jwks.json", kid: "../x" }),
      "another algorithm in the header": `${b64({ ...header, alg: "ES256" })}.${claims}.${signature}`,
      "other claims": `${head}.${b64({ ...payload, machine_id: stranger.id })}.${signature}`,
      "other claims with their signature": `${theirHead}.${claims}.${theirSignature}`,
      "their key, our name": `${head}.${theirClaims}.${theirSignature}`,
      "a padded signature": `${good}=`,
      "bits after the signature": `${good}A`,
      "a fourth part": `${good}.x`,
      "a changed last letter": good.slice(0, -1) + (good.endsWith("A") ? "B" : "A"),
      blanks: `${head}. ${claims}.${signature}`,
    };
    const believe = believer(issuer);
    for (const [what, text] of Object.entries(forged)) {
      const answer = await platform.ask("GET /v1/gateway/list", { token: text });
      assert.equal(answer.status, 401, what);
      if (!/padded|bits|last letter/.test(what)) await assert.rejects(believe(text, audience), what);
    }
    assert.equal((await platform.ask("GET /v1/gateway/list", { token: good })).status, 200);
    await believe(good, audience);
    await assert.rejects(believe(good, "sts.amazonaws.com"), /audience/);
    await assert.rejects(believe(theirs, audience), "the other organization's key is not among ours");
    await assert.rejects(believer(`${platform.base_url}/oidc/other`)(good, audience));
  });

  test("a token expires with its lifetime, and is refused after its machine is destroyed", async (t) => {
    const clock = virtualClock();
    const platform = await inside(t, { HANGAR_OIDC_TOKEN_LIFETIME: "60" }, { clock });
    const machine = await platform.machine("web-1");
    const good = await token(platform, machine, { aud: `${platform.base_url}/v1/gateway` });
    const list = () => platform.ask("GET /v1/gateway/list", { token: good });
    assert.equal((await list()).status, 200);
    clock.jump(70_000);
    assert.match((await list()).body.error, /expired/);
    clock.jump(-140_000);
    assert.match((await list()).body.error, /not valid yet/);
    clock.jump(70_000);
    assert.equal((await list()).status, 200);
    await platform.ask(`POST /v1/apps/web/machines/${machine.id}/stop`);
    await until("the token ends with its machine", async () => {
      await clock.advance(0);
      return /is stopped/.test((await list()).body.error ?? "");
    });
  });

  test("names that could split a subject are refused at creation (J3)", async (t) => {
    const { ask } = await inside(t);
    for (const name of ["a:b", "a*", "a?b", "a/b", "A", "а", "a b", "a\u0000", "-a", "ａ"]) {
      assert.equal((await ask("POST /v1/apps", { body: { app_name: name } })).status, 422, name);
      assert.equal((await ask("POST /v1/orgs", { body: { name: "x", slug: name } })).status, 422, name);
      const machine = await ask("POST /v1/apps/web/machines", { body: { name, config: { image: "x" } } });
      assert.ok(machine.status === 422 || machine.status === 400, `${name}: ${machine.status}`);
    }
  });

  test("the issuer's endpoints are open and hold only public data; unknown organizations are 404", async (t) => {
    const platform = await inside(t, { HANGAR_OIDC_ISSUER_URL: "https://id.example/tokens" });
    const config = await platform.ask("GET /oidc/personal/.well-known/openid-configuration", { token: null });
    assert.equal(config.body.issuer, "https://id.example/tokens/personal");
    assert.equal(config.headers["cache-control"], "public, max-age=300");
    const { body, text } = await platform.ask("GET /oidc/personal/.well-known/jwks.json", { token: null });
    assert.deepEqual(body.keys.map(({ alg }: { alg: string }) => alg).sort(), ["ES256", "RS256"]);
    for (const secret of ['"d"', '"p"', '"q"', '"dp"']) assert.ok(!text.includes(secret));
    for (const path of ["openid-configuration", "jwks.json"])
      assert.equal((await platform.ask(`GET /oidc/nobody/.well-known/${path}`, { token: null })).status, 404);
    assert.equal((await platform.ask("POST /v1/tokens/oidc")).status, 404);
  });

  test("keys rotate every 30 days, and every valid token has its key published (J4)", async (t) => {
    const clock = virtualClock();
    const platform = await inside(t, {}, { clock });
    const machine = await platform.machine("web-1");
    const jwks = async () =>
      (await platform.ask("GET /oidc/personal/.well-known/jwks.json")).body as jose.JSONWebKeySet;
    const kids = new Set<string>();
    let kept = await jwks();
    for (let hours = 0; hours < 24 * 70; hours += 10) {
      // A verifier that fetched the keys up to an hour ago knows the one that signs now.
      const text = await token(platform, machine, { alg: "ES256" });
      const currentDate = new Date(clock.now());
      const { protectedHeader } = await jose.jwtVerify(text, jose.createLocalJWKSet(kept), { currentDate });
      kids.add(protectedHeader.kid ?? "");
      clock.jump(9 * 3_600_000);
      kept = await jwks();
      clock.jump(3_590_000);
      await clock.advance(1000);
    }
    assert.equal(kids.size, 3);
    assert.equal((await jwks()).keys.length, 2);

    const before = await token(platform, machine);
    const { body } = await platform.ask("POST /v1/orgs/personal/oidc/rotate", { body: { revoke: true } });
    assert.deepEqual(
      body.keys.map(({ state }: { state: string }) => state),
      ["signing", "signing"],
    );
    const currentDate = new Date(clock.now());
    await assert.rejects(jose.jwtVerify(before, jose.createLocalJWKSet(await jwks()), { currentDate }));
    const after = await token(platform, machine);
    await jose.jwtVerify(after, jose.createLocalJWKSet(await jwks()), { currentDate });
  });
});

suite("API inside a machine", () => {
  test("a machine's socket gives access to that machine only (J5)", async (t) => {
    const platform = await inside(t);
    const machines = await Promise.all(["a", "b", "c"].map((name) => platform.machine(name)));
    for (const machine of machines) {
      for (const other of machines) {
        const { status } = await platform.from(machine, `GET /v1/apps/web/machines/${other.id}`);
        assert.equal(status, machine === other ? 200 : 404);
      }
      const claims = jsonwebtoken.decode(await token(platform, machine)) as jsonwebtoken.JwtPayload;
      assert.equal(claims["machine_id"], machine.id);
    }
    const [a = assert.fail(), b = assert.fail()] = machines;
    // A token that it has found, and that was not made for its inside, gives it nothing.
    const headers = { authorization: `Bearer ${platform.token}` };
    assert.equal((await platform.from(a, `GET /v1/apps/web/machines/${b.id}`, { headers })).status, 403);
    const refused = [
      "POST /v1/apps/web/machines",
      "GET /v1/apps",
      "GET /v1/orgs",
      `DELETE /v1/apps/web/machines/${a.id}`,
      `POST /v1/apps/web/machines/${a.id}`,
    ];
    for (const target of refused) {
      assert.equal((await platform.from(a, target, { headers })).status, 403, target);
      assert.equal((await platform.from(a, target)).status, 401, target);
    }
    assert.equal((await platform.from(a, `POST /v1/apps/web/machines/${a.id}/suspend`)).status, 200);
    await platform.ask(`GET /v1/apps/web/machines/${a.id}/wait?state=suspended`);
  });

  test("sockets are reopened after a restart, usable by any user, and removed with their machine", async (t) => {
    const data_dir = tempDir();
    const first = await inside(t, { HANGAR_DATA_DIR: data_dir });
    const [stays, goes] = [await first.machine("stays"), await first.machine("goes")];
    assert.equal(stays.socket, join(data_dir, "run/api", stays.id, "api"));
    assert.equal(statSync(stays.socket).mode & 0o777, 0o666);
    assert.equal(statSync(dirname(stays.socket)).mode & 0o777, 0o755);
    assert.equal(statSync(join(data_dir, "run/api")).mode & 0o777, 0o700);
    const folder = statSync(dirname(stays.socket)).ino;
    await first.ask(`DELETE /v1/apps/web/machines/${goes.id}?force=true`);
    await first.ask(`GET /v1/apps/web/machines/${goes.id}/wait?state=destroyed`);
    await first.close();
    await assert.rejects(overSocket(stays.socket, "POST /v1/tokens/oidc"));
    const second = await inside(t, { HANGAR_DATA_DIR: data_dir });
    // The very folder that the machine has bound.
    assert.equal(statSync(dirname(stays.socket)).ino, folder);
    assert.equal((await second.from(stays, "POST /v1/tokens/oidc")).status, 200);
    assert.equal(existsSync(dirname(goes.socket)), false);
  });

  test("quiet() closes open connections, remove() closes all, and long socket paths work", async (t) => {
    const data_dir = join(tempDir(), "x".repeat(120));
    const platform = await inside(t, { HANGAR_DATA_DIR: data_dir });
    const machine = await platform.machine("web-1");
    assert.ok(machine.socket.length > 108);
    // A shorter way to the same folder, as the machine has one.
    const way = join(tempDir(), "svc");
    symlinkSync(dirname(machine.socket), way);
    const connected = async (): Promise<{ closed: Promise<unknown> }> => {
      const open = createConnection(join(way, "api"));
      await once(open, "connect");
      const closed = new Promise((resolve) => open.once("close", resolve));
      open.on("error", () => {}).resume();
      // One request, so that the connection is surely taken.
      open.write("GET /v1/gateway/list HTTP/1.1\r\nhost: x\r\n\r\n");
      await once(open, "data");
      return { closed };
    };
    const first = await connected();
    await platform.local_api.quiet(machine.id);
    await first.closed;
    assert.equal((await overSocket(join(way, "api"), "POST /v1/tokens/oidc")).status, 200);
    const second = await connected();
    await platform.local_api.remove(machine.id);
    await second.closed;
    assert.equal(existsSync(dirname(machine.socket)), false);
  });

  test("a machine over its token rate limit gets 429; others do not", async (t) => {
    const platform = await inside(t, {}, { clock: virtualClock() });
    const [greedy, modest] = [await platform.machine("greedy"), await platform.machine("modest")];
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => platform.from(greedy, "POST /v1/tokens/oidc", { body: '{"alg":"ES256"}' })),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 20);
    assert.equal(answers.filter(({ status }) => status === 429).length, 10);
    assert.equal((await platform.from(modest, "POST /v1/tokens/oidc")).status, 200);
  });

  test("AWS_ROLE_ARN provides a token file that is renewed, and the variables for it", async (t) => {
    const clock = virtualClock();
    const platform = await inside(t, {}, { clock });
    const env = { AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/web" };
    const machine = await platform.machine("web-1", { env });
    const file = join(dirname(machine.socket), "oidc_token");
    const read = (): jsonwebtoken.JwtPayload =>
      jsonwebtoken.decode(readFileSync(file, "utf8")) as jsonwebtoken.JwtPayload;
    const first = read();
    assert.deepEqual([first.aud, first.sub], ["sts.amazonaws.com", "personal:web:web-1"]);
    assert.equal(statSync(file).mode & 0o777, 0o444);
    await clock.advance(310_000);
    await until("there is a fresh one", () => read().jti !== first.jti);
    assert.ok((read().exp ?? 0) > (first.exp ?? 0));
    const plain = await platform.machine("plain");
    assert.equal(existsSync(join(dirname(plain.socket), "oidc_token")), false);
  });
});
