/** Secret keys of apps on the Fly listener: kept sealed, used in the platform, known answers of the standards. */
import assert from "node:assert/strict";
import { createHmac, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { FLY_LIMITS } from "#fly/limits.ts";
import { xaesOpen, xaesSeal } from "#fly/secret-keys/xaes.ts";
import { type FlyPlatform, flyPlatform } from "./fly-listener.ts";

const base64 = (value: string | Uint8Array): string => Buffer.from(value).toString("base64");
const PATH = "/v1/apps/web/secretkeys";

async function withApp(t: TestContext): Promise<FlyPlatform> {
  const platform = await flyPlatform(t);
  await platform.flies("POST /v1/apps", { body: { app_name: "web" } });
  return platform;
}

suite("secret keys", () => {
  test("XAES-256-GCM gives the answers of its specification", () => {
    const nonce = Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWX");
    const plain = Buffer.from("XAES-256-GCM");
    for (const [byte, associated, ciphertext] of [
      [1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"],
      [3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"],
    ] as const) {
      const [key, aad] = [Buffer.alloc(32, byte), Buffer.from(associated)];
      const sealed = xaesSeal(key, plain, aad, nonce);
      assert.equal(sealed.subarray(24).toString("hex"), ciphertext);
      assert.deepEqual(xaesOpen(key, sealed, aad), plain);
      assert.equal(xaesOpen(key, sealed, Buffer.from("other")), undefined);
      assert.equal(xaesOpen(key, sealed.subarray(0, 30), aad), undefined);
    }
  });

  test("each type signs and verifies, or encrypts and decrypts, and never shows its key", async (t) => {
    const { flies } = await withApp(t);
    for (const type of ["hs256", "hs384", "hs512", "es256", "nacl_auth", "nacl_sign"]) {
      const key = `${PATH}/${type}v1`;
      const made = await flies(`POST ${key}/generate`, { body: { type, value: null } });
      assert.deepEqual([made.status, made.body.name, made.body.type, made.body.version], [201, `${type}v1`, type, 1]);
      const { signature } = (await flies(`POST ${key}/sign`, { body: { plaintext: base64("hello") } })).body;
      const verified = (plaintext: string, of = signature) =>
        flies(`POST ${key}/verify`, { body: { plaintext: base64(plaintext), signature: of } });
      assert.equal((await verified("hello")).status, 204, type);
      for (const wrong of [await verified("hellO"), await verified("hello", base64("x")), await verified("hello", "")])
        assert.deepEqual([wrong.status, wrong.body.code], [400, "invalid_request"], type);
      const cannot = await flies(`POST ${key}/encrypt`, { body: { plaintext: base64("x") } });
      assert.match(cannot.body.error, /cannot encrypt \(types that can: nacl_secretbox, xaes256gcm\)/);
    }
    for (const type of ["nacl_secretbox", "xaes256gcm"]) {
      const key = `${PATH}/${type}v1`;
      await flies(`POST ${key}/generate`, { body: { type } });
      const { ciphertext } = (await flies(`POST ${key}/encrypt`, { body: { plaintext: base64("hello") } })).body;
      const again = (await flies(`POST ${key}/encrypt`, { body: { plaintext: base64("hello") } })).body.ciphertext;
      assert.notEqual(ciphertext, again, "nonces are random");
      const opened = await flies(`POST ${key}/decrypt`, { body: { ciphertext } });
      assert.deepEqual([opened.status, opened.body], [200, { plaintext: base64("hello") }]);
      const changed = Buffer.from(ciphertext, "base64");
      changed[30] = (changed[30] ?? 0) ^ 1;
      for (const wrong of [base64(changed), "", base64("short")])
        assert.equal((await flies(`POST ${key}/decrypt`, { body: { ciphertext: wrong } })).status, 400, type);
    }
    const listed = await flies(`GET ${PATH}`);
    assert.deepEqual(
      listed.body.secret_keys.map(({ name, public_key }: { name: string; public_key?: string }) => [
        name,
        !!public_key,
      ]),
      [
        ["es256v1", true],
        ["hs256v1", false],
        ["hs384v1", false],
        ["hs512v1", false],
        ["nacl_authv1", false],
        ["nacl_secretboxv1", false],
        ["nacl_signv1", true],
        ["xaes256gcmv1", false],
      ],
    );
  });

  test("associated data is authenticated, and refused where the type has none", async (t) => {
    const { flies } = await withApp(t);
    for (const type of ["xaes256gcm", "nacl_secretbox"])
      await flies(`POST ${PATH}/${type}/generate`, { body: { type } });
    const plaintext = base64("hello");
    const { ciphertext } = (
      await flies(`POST ${PATH}/xaes256gcm/encrypt`, { body: { plaintext, associated_data: base64("row 7") } })
    ).body;
    const open = async (associated_data?: string) =>
      (await flies(`POST ${PATH}/xaes256gcm/decrypt`, { body: { ciphertext, associated_data } })).status;
    assert.deepEqual([await open(base64("row 7")), await open(base64("row 8")), await open()], [200, 400, 400]);
    const none = await flies(`POST ${PATH}/nacl_secretbox/encrypt`, { body: { plaintext, associated_data: "eA==" } });
    assert.match(none.body.error, /has no associated data/);
  });

  test("a key that is set is used as other programs use it", async (t) => {
    const { flies } = await withApp(t);
    const key = Buffer.alloc(32, 7);
    // Both ways in which bytes are sent.
    for (const value of [base64(key), [...key]]) {
      const set = await flies(`POST ${PATH}/mac`, { body: { type: "hs256", value } });
      assert.equal(set.status, 201, JSON.stringify(set.body));
    }
    assert.equal((await flies(`POST ${PATH}/mac`, { body: { type: "hs256", value: base64(key) } })).body.version, 3);
    const { signature } = (await flies(`POST ${PATH}/mac/sign`, { body: { plaintext: base64("hello") } })).body;
    assert.equal(signature, createHmac("sha256", key).update("hello").digest("base64"));

    const own = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const value = base64(own.privateKey.export({ format: "der", type: "pkcs8" }));
    const { public_key } = (await flies(`POST ${PATH}/ec`, { body: { type: "es256", value } })).body;
    const signed = (await flies(`POST ${PATH}/ec/sign`, { body: { plaintext: base64("hello") } })).body.signature;
    const shown = createPublicKey({ key: Buffer.from(public_key, "base64"), format: "der", type: "spki" });
    assert.equal(shown.equals(own.publicKey), true);
    const of = { key: own.publicKey, dsaEncoding: "ieee-p1363" } as const;
    assert.equal(verify("sha256", Buffer.from("hello"), of, Buffer.from(signed, "base64")), true);
  });

  test("what is no key, no name or no type is refused with what is allowed", async (t) => {
    const { flies } = await withApp(t);
    const said = async (target: string, body: unknown): Promise<[number, string]> => {
      const answer = await flies(`POST ${PATH}/${target}`, { body });
      return [answer.status, answer.body.error];
    };
    const [status, text] = await said("a", { type: "hs256", value: base64("short") });
    assert.deepEqual([status, /must be 32 to 1024 bytes/.test(text)], [400, true], text);
    const secp = generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey;
    for (const [type, value] of [
      ["es256", base64("no key")],
      ["es256", base64(secp.export({ format: "der", type: "pkcs8" }))],
      ["nacl_sign", base64(Buffer.alloc(64))],
      ["nacl_sign", base64(Buffer.alloc(31))],
      ["nacl_auth", base64(Buffer.alloc(33))],
      ["xaes256gcm", ""],
      ["hs256", "?"],
      ["hs256", [256]],
    ] as const)
      assert.equal((await said("a", { type, value }))[0], 400, `${type} ${String(value)}`);
    assert.match((await said("a/generate", { type: "nacl_box" }))[1], /the types are es256, hs256/);
    assert.match((await said("a/generate", { type: "constructor" }))[1], /no secret keys of type "constructor"/);
    assert.match((await said("a.b/generate", { type: "hs256" }))[1], /letters, digits, - and _/);
    assert.equal((await said("never/sign", { plaintext: "" }))[0], 404);
    assert.equal((await flies(`DELETE ${PATH}/never`)).status, 404);
    assert.equal((await flies("GET /v1/apps/other/secretkeys")).status, 404);
  });

  test("an app has at most so many keys", async (t) => {
    const { flies } = await withApp(t);
    const most = FLY_LIMITS.secret_keys_per_app;
    for (let at = 0; at < most; at++) await flies(`POST ${PATH}/k${at}/generate`, { body: { type: "nacl_auth" } });
    const over = await flies(`POST ${PATH}/one-more/generate`, { body: { type: "nacl_auth" } });
    assert.deepEqual([over.status, over.body.code], [422, "limit_reached"]);
    assert.match(over.body.error, /limit secret_keys_per_app/);
    assert.equal((await flies(`POST ${PATH}/k0/generate`, { body: { type: "nacl_auth" } })).body.version, 2);
  });

  test("keys are of one app, need a token that may write, and are sealed in the database", async (t) => {
    const { flies, ask, data_dir } = await withApp(t);
    const value = Buffer.from("the-secret-key-of-thirty-two-by!");
    await flies(`POST ${PATH}/mac`, { body: { type: "nacl_auth", value: base64(value) } });
    await ask("POST /v1/orgs", { body: { name: "other" } });
    const tokenOf = async (org: string, kind: string): Promise<string> =>
      (await ask(`POST /v1/orgs/${org}/tokens`, { body: { kind } })).body.token;
    const [readonly, stranger] = [await tokenOf("personal", "readonly"), await tokenOf("other", "org")];
    const as = async (token: string, target: string, body?: unknown) =>
      (await flies(target, { body, authorization: `FlyV1 ${token}` })).status;
    const uses = ["sign", "verify", "encrypt", "decrypt", "generate"].map((use) => `POST ${PATH}/mac/${use}`);
    const body = { type: "hs256", plaintext: "", ciphertext: "", signature: "", value: "" };
    assert.equal(await as(readonly, `GET ${PATH}`), 200);
    for (const target of [...uses, `POST ${PATH}/mac`, `DELETE ${PATH}/mac`]) {
      const sent = target.startsWith("POST") ? body : undefined;
      assert.equal(await as(readonly, target, sent), 403, target);
      assert.equal(await as(stranger, target, sent), 404, target);
    }
    assert.equal(await as(stranger, `GET ${PATH}`), 404);
    const files = readdirSync(data_dir).filter((name) => name.includes(".db"));
    assert.ok(files.length > 0);
    for (const name of files) assert.equal(readFileSync(join(data_dir, name)).includes(value), false, name);
    await flies("DELETE /v1/apps/web");
    await flies("POST /v1/apps", { body: { app_name: "web" } });
    assert.deepEqual((await flies(`GET ${PATH}`)).body, { secret_keys: [] });
  });
});
