/** Images as a client of the API sees them. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { fail } from "#core/errors.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { testPlatform } from "./platform.ts";

suite("image resolve API", () => {
  test("a name resolves to a digest and a reference that machines accept", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const path = "GET /v1/apps/web/images/resolve?image=";
    const found = await ask(`${path}ghcr.io/acme/web:7`);
    assert.equal(found.status, 200);
    assert.match(found.body.digest, /^sha256:[0-9a-f]{64}$/);
    assert.deepEqual(found.body, {
      image: "ghcr.io/acme/web:7",
      digest: found.body.digest,
      reference: `ghcr.io/acme/web:7@${found.body.digest}`,
    });
    assert.deepEqual((await ask(`${path}ghcr.io/acme/web:7`)).body, found.body);
    const again = await ask(`${path}${encodeURIComponent(found.body.reference)}`);
    assert.deepEqual([again.body.digest, again.body.reference], [found.body.digest, found.body.reference]);
    const made = await ask("POST /v1/apps/web/machines", { body: { config: { image: found.body.reference } } });
    assert.equal(made.status, 200);
    assert.deepEqual([made.body.image_ref.tag, made.body.image_ref.digest], ["7", found.body.digest]);
  });

  test("the reference includes the tag even if none was given", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const resolve = async (image: string) =>
      (await ask(`GET /v1/apps/web/images/resolve?image=${encodeURIComponent(image)}`)).body;
    for (const image of ["web", "localhost:5000/web"]) {
      const { digest, reference } = await resolve(image);
      assert.equal(reference, `${image}:latest@${digest}`);
    }
    const digest = `sha256:${"a".repeat(64)}`;
    assert.equal((await resolve(`web@${digest}`)).reference, `web@${digest}`);
  });

  test("a missing image is 404 with registry, repository and tag", async (t) => {
    const around = (driver: RuntimeDriver): RuntimeDriver =>
      Object.assign(driver, {
        resolve: async () => fail("image_not_found", 'the image is not here: repository "library/web", tag "9"'),
      });
    const { ask } = await testPlatform(t, {}, { around });
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const { status, body } = await ask("GET /v1/apps/web/images/resolve?image=web:9");
    assert.deepEqual([status, body.status], [404, "not_found"]);
    assert.match(body.error, /repository "library\/web", tag "9"/);
  });

  test("an invalid image name is refused with its field", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    for (const image of ["Web", "web:", "web@sha256:1", "a b", "../x"]) {
      const { status, body } = await ask(`GET /v1/apps/web/images/resolve?image=${encodeURIComponent(image)}`);
      assert.deepEqual([status, body.status, body.details[0].path], [400, "invalid_request", "query.image"], image);
    }
    assert.equal((await ask("GET /v1/apps/web/images/resolve")).status, 400);
    assert.equal((await ask("GET /v1/apps/none/images/resolve?image=web")).status, 404);
  });
});

suite("images of releases", () => {
  const digest = `sha256:${"a".repeat(64)}`;

  test("a release stores the image's name and digest", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const body = { definition: {}, image: "web:1", image_digest: digest };
    const made = await ask("POST /v1/apps/web/releases", { body });
    assert.deepEqual([made.status, made.body.image, made.body.image_digest], [201, "web:1", digest]);
    await ask("POST /v1/apps/web/releases", { body: { definition: {} } });
    const { releases } = (await ask("GET /v1/apps/web/releases")).body;
    const facts = releases.map((one: typeof made.body) => [one.version, one.image, one.image_digest]);
    assert.deepEqual(facts, [
      [2, null, null],
      [1, "web:1", digest],
    ]);
    assert.equal((await ask("GET /v1/apps/web/releases/1")).body.image_digest, digest);
  });

  test("an invalid digest is refused with its field", async (t) => {
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    for (const image_digest of ["sha256:1", digest.toUpperCase(), 5]) {
      const { status, body } = await ask("POST /v1/apps/web/releases", { body: { definition: {}, image_digest } });
      assert.deepEqual([status, body.details[0].path], [400, "body.image_digest"], String(image_digest));
    }
    const long = await ask("POST /v1/apps/web/releases", { body: { definition: {}, image: "a".repeat(1025) } });
    assert.equal(long.body.details[0].path, "body.image");
    assert.deepEqual((await ask("GET /v1/apps/web/releases")).body.releases, []);
  });
});
