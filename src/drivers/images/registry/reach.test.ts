/** Registries that lead a pull to addresses inside: by their name, their token service, their redirects, their DNS. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { ApiError } from "#core/errors.ts";
import type { Lookup } from "#core/public-addresses.ts";
import { file, makeImage, NEVER, NOT_ROOT, openStore, tar, tempStore } from "../fixtures.ts";
import { testRegistry } from "./fixtures.ts";

const image = makeImage([tar(file("app", "run me"))]);
const portOf = (host: string): string => host.split(":")[1] ?? "";

async function refusal(work: Promise<unknown>): Promise<ApiError> {
  const thrown = await work.then(
    () => assert.fail("it worked"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, String(thrown));
  return thrown;
}

suite("registries on private addresses", { skip: NOT_ROOT }, () => {
  test("a registry on this box is refused until the operator allows it, and the error says how", async (t) => {
    const inside = await testRegistry(t);
    const name = inside.serve("web", "1", image);
    const images = await openStore(t);
    const port = portOf(inside.host);
    for (const host of [inside.host, `localhost:${port}`, `[::1]:${port}`, `127.1:${port}`, `0x7f000001.:${port}`]) {
      const refused = await refusal(images.resolve(`${host}/web:1`, "org", NEVER));
      if (host.includes("x")) continue; // Not a name of a registry at all.
      assert.equal(refused.code, "address_refused", host);
      assert.match(refused.message, /the registry is not at a public address.*repository "web"/);
    }
    const { extras } = await refusal(images.resolve(name, "org", NEVER));
    assert.ok(extras.hint?.includes(`add ${inside.host} to HANGAR_REGISTRY_ALLOW_PRIVATE`), extras.hint);
    assert.equal(inside.seen.length, 0);
    const allowing = await openStore(t, { allow_private: [inside.host] });
    assert.equal((await allowing.resolve(name, "org", NEVER)).digest, image.digest);
  });

  test("an allowed registry is allowed with its port only", async (t) => {
    const [named, other] = [await testRegistry(t), await testRegistry(t)];
    const images = await openStore(t, { allow_private: [named.host, "127.0.0.1"] });
    assert.equal((await refusal(images.resolve(`${other.host}/web:1`, "org", NEVER))).code, "address_refused");
    assert.equal(other.seen.length, 0);
  });

  for (const [what, lead] of Object.entries({
    realm: (to: string) => ({ status: 401, headers: { "www-authenticate": `Bearer realm="${to}/token"` } }),
    redirect: (to: string) => ({ status: 307, headers: { location: `${to}/latest/meta-data` } }),
  })) {
    test(`a ${what} to a private address is not followed`, async (t) => {
      const [registry, inside] = [await testRegistry(t), await testRegistry(t)];
      inside.fault = (_, response) => !!response.writeHead(200).end('{"token":"of somebody else"}');
      const images = await openStore(t, { allow_private: [registry.host] });
      const places = `http://${inside.host} https://${inside.host} https://169.254.169.254 https://[fe80::1] https://10.0.0.1
        https://[::ffff:127.0.0.1]:${portOf(inside.host)} https://2130706433 https://localhost:${portOf(inside.host)}`;
      for (const place of places.split(/\s+/)) {
        registry.fault = (_, response) => {
          const { status, headers } = lead(place);
          return !!response.writeHead(status, headers as Record<string, string>).end();
        };
        const refused = await refusal(images.resolve(`${registry.host}/web:1`, "org", NEVER));
        assert.equal(refused.code, "address_refused", `${place}: ${refused.message}`);
        assert.ok(refused.extras.hint?.includes(`add ${new URL(place).host} to`), refused.extras.hint);
      }
      assert.equal(inside.seen.length, 0);
      assert.ok(registry.seen.every(({ authorization }) => authorization === undefined));
    });
  }

  test("a host name that resolves to a private address is not connected to, even on a later lookup", async (t) => {
    const inside = await testRegistry(t);
    let seen = 0;
    const lookup: Lookup = (_host, _options, done) => {
      const answers = [["127.0.0.1"], ["192.0.0.8", "127.0.0.1"], ["::1"], ["169.254.169.254"]];
      done(
        null,
        (answers[seen++ % answers.length] ?? []).map((address) => ({
          address,
          family: address.includes(":") ? 6 : 4,
        })),
      );
    };
    const images = await openStore(t, { lookup });
    for (let time = 0; time < 8; time++) {
      const refused = await refusal(images.resolve(`rebound.example:${portOf(inside.host)}/web:1`, "org", NEVER));
      assert.equal(refused.code, "address_refused");
      assert.doesNotMatch(JSON.stringify([refused.message, refused.extras.hint]), /127\.0|169\.254/);
    }
    assert.deepEqual([seen, inside.seen.length], [8, 0]);
  });

  test("a host that a blob is redirected to gets no credentials, and its challenge is not followed", async (t) => {
    const [registry, storage, thief] = [await testRegistry(t), await testRegistry(t), await testRegistry(t)];
    const registry_config = join(tempStore(t), "config.json");
    writeFileSync(registry_config, JSON.stringify({ auths: { [registry.host]: { username: "u", password: "p" } } }));
    const allow_private = [registry.host, storage.host, thief.host];
    const images = await openStore(t, { allow_private, registry_config });
    const name = registry.serve("web", "1", image);
    thief.fault = (_, response) => !!response.writeHead(200).end('{"token":"t"}');
    const challenges = [`Bearer realm="http://${thief.host}/token"`, 'Basic realm="x"'];
    for (const challenge of challenges) {
      storage.fault = (_, response) => !!response.writeHead(401, { "www-authenticate": challenge }).end();
      registry.fault = ({ path }, response) =>
        path.includes("/blobs/") && !!response.writeHead(307, { location: `http://${storage.host}${path}` }).end();
      assert.equal((await refusal(images.resolve(name, "org", NEVER))).code, "image_refused");
    }
    assert.equal(thief.seen.length, 0);
    for (const { authorization } of [...storage.seen, ...registry.seen]) assert.equal(authorization, undefined);
  });

  test("a redirect with credentials in its URL is not followed", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host] });
    registry.fault = (_, response) => !!response.writeHead(302, { location: "https://u:p@public.example/" }).end();
    assert.match((await refusal(images.resolve(`${registry.host}/a:1`, "org", NEVER))).message, /a login of its own/);
  });

  test("a registry name that is not valid in a URL is refused as an invalid image reference", async (t) => {
    const images = await openStore(t);
    for (const name of ["registry.example:99999/a:1", "1.2.3.999:5/a:1", "[::::]/a:1"])
      assert.equal((await refusal(images.resolve(name, "org", NEVER))).code, "invalid_request", name);
  });
});
