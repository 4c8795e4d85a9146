/** The platform's own registry, spoken to request by request as the OCI distribution specification says. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { digestOf, MANIFEST, openRegistry } from "./registry-client.ts";

const INDEX = "application/vnd.oci.image.index.v1+json";

suite("registry", () => {
  test("the base endpoint asks for basic auth, and accepts a token as the password", async (t) => {
    const client = await openRegistry(t);
    const refused = await client.expect(401, "GET /v2/", { token: null });
    assert.match(refused.headers.get("www-authenticate") ?? "", /^Basic realm=/);
    assert.equal(await client.refused(401, "GET /v2/", { token: "wrong" }), "UNAUTHORIZED");
    const answer = await client.expect(200, "GET /v2/");
    assert.equal(answer.headers.get("docker-distribution-api-version"), "registry/2.0");
    await client.expect(200, "GET /v2/", {
      token: null,
      headers: { authorization: `Bearer ${client.platform.token}` },
    });
  });

  test("a blob is uploaded whole, in chunks, in one request, and mounted from another repository", async (t) => {
    const client = await openRegistry(t);
    const bytes = randomBytes(300_000);
    const digest = digestOf(bytes);
    await client.pushBlob("personal/web", bytes);
    const head = await client.expect(200, `HEAD /v2/personal/web/blobs/${digest}`);
    assert.equal(head.headers.get("content-length"), "300000");
    const got = await client.expect(200, `GET /v2/personal/web/blobs/${digest}`);
    assert.deepEqual(Buffer.from(await got.arrayBuffer()), bytes);
    const part = await client.expect(206, `GET /v2/personal/web/blobs/${digest}`, {
      headers: { range: "bytes=10-19" },
    });
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(10, 20));
    assert.equal(part.headers.get("content-range"), "bytes 10-19/300000");
    await client.expect(416, `GET /v2/personal/web/blobs/${digest}`, { headers: { range: "bytes=300000-" } });

    const begun = await client.expect(202, "POST /v2/personal/chunks/blobs/uploads/");
    const at = begun.headers.get("location") ?? "";
    const chunk = async (from: number, to: number, status: number): Promise<Response> =>
      await client.expect(status, `PATCH ${at}`, {
        body: bytes.subarray(from, to),
        headers: { "content-range": `${from}-${to - 1}`, "content-type": "application/octet-stream" },
      });
    assert.equal((await chunk(0, 100_000, 202)).headers.get("range"), "0-99999");
    assert.equal((await chunk(50_000, 60_000, 416)).headers.get("range"), "0-99999");
    const status = await client.expect(204, `GET ${at}`);
    assert.equal(status.headers.get("range"), "0-99999");
    await chunk(100_000, 200_000, 202);
    await client.expect(201, `PUT ${at}?digest=${digest}`, {
      body: bytes.subarray(200_000),
      headers: { "content-range": "200000-299999" },
    });
    await client.expect(200, `HEAD /v2/personal/chunks/blobs/${digest}`);

    const other = `sha512:${createHash("sha512").update(bytes).digest("hex")}`;
    await client.expect(201, `POST /v2/personal/web/blobs/uploads/?digest=${other}`, { body: bytes });
    await client.expect(200, `HEAD /v2/personal/web/blobs/${other}`);

    const once = randomBytes(10);
    await client.expect(201, `POST /v2/personal/once/blobs/uploads/?digest=${digestOf(once)}`, { body: once });
    await client.expect(201, `POST /v2/personal/other/blobs/uploads/?mount=${digest}&from=personal/web`);
    await client.expect(200, `HEAD /v2/personal/other/blobs/${digest}`);
    await client.expect(202, `POST /v2/personal/other/blobs/uploads/?mount=${digestOf("no")}&from=personal/web`);
  });

  test("equal blobs in several repositories are stored once", async (t) => {
    const client = await openRegistry(t);
    const bytes = randomBytes(5000);
    for (const name of ["a", "b", "c"]) await client.pushBlob(`personal/${name}`, bytes);
    const files = readdirSync(join(client.platform.data_dir, "registry/objects"), {
      recursive: true,
      encoding: "utf8",
    });
    assert.equal(files.filter((file) => /blobs\/sha256-[0-9a-f]{64}\/./.test(file)).length, 1);
  });

  test("a blob with another digest is refused and leaves nothing", async (t) => {
    const client = await openRegistry(t);
    const begun = await client.expect(202, "POST /v2/personal/web/blobs/uploads/");
    const at = begun.headers.get("location");
    assert.equal(await client.refused(400, `PUT ${at}?digest=${digestOf("a")}`, { body: "b" }), "DIGEST_INVALID");
    assert.equal(await client.refused(404, `GET ${at}`), "BLOB_UPLOAD_UNKNOWN");
    assert.deepEqual(readdirSync(join(client.platform.data_dir, "registry/uploads")), []);
    for (const digest of ["sha256:short", `sha512:${"a".repeat(64)}`, `sha384:${"a".repeat(96)}`, "x"])
      assert.equal(await client.refused(400, `GET /v2/personal/web/blobs/${digest}`), "DIGEST_INVALID");
  });

  test("a manifest is put by tag and digest, and needs its blobs", async (t) => {
    const client = await openRegistry(t);
    const digest = await client.pushImage("personal/web", "1");
    for (const reference of ["1", digest]) {
      const got = await client.expect(200, `GET /v2/personal/web/manifests/${reference}`);
      assert.equal(got.headers.get("docker-content-digest"), digest);
      assert.equal(got.headers.get("content-type"), MANIFEST);
      assert.equal(digestOf(Buffer.from(await got.arrayBuffer())), digest);
    }
    const missing = JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: { mediaType: "x/y", digest: digestOf("gone"), size: 4 },
      layers: [],
    });
    const put = { body: missing, headers: { "content-type": MANIFEST } };
    assert.equal(await client.refused(404, "PUT /v2/personal/web/manifests/2", put), "MANIFEST_BLOB_UNKNOWN");
    assert.equal(await client.refused(400, `PUT /v2/personal/web/manifests/${digest}`, put), "DIGEST_INVALID");
    assert.equal(await client.refused(404, "GET /v2/personal/web/manifests/2"), "MANIFEST_UNKNOWN");
    for (const body of ["", "nonsense", "[]", "{}", '{"schemaVersion":1}', `{"schemaVersion":2,"layers":7}`])
      assert.equal(
        await client.refused(400, "PUT /v2/personal/web/manifests/2", { body, headers: { "content-type": MANIFEST } }),
        "MANIFEST_INVALID",
      );
  });

  test("an index lists manifests of its repository, and referrers list attached ones", async (t) => {
    const client = await openRegistry(t);
    const image = await client.pushImage("personal/web", "1");
    const size = (await (await client.expect(200, "GET /v2/personal/web/manifests/1")).arrayBuffer()).byteLength;
    const subject = { mediaType: MANIFEST, digest: image, size };
    const index = JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [subject] });
    await client.expect(201, "PUT /v2/personal/web/manifests/all", { body: index, headers: { "content-type": INDEX } });
    const attached = await client.pushImage("personal/web", "signed", {
      artifactType: "application/x.signature",
      subject,
    });
    const list = (await (await client.expect(200, `GET /v2/personal/web/referrers/${image}`)).json()) as {
      manifests: { digest: string; artifactType: string }[];
    };
    assert.deepEqual(
      list.manifests.map(({ digest, artifactType }) => [digest, artifactType]),
      [[attached, "application/x.signature"]],
    );
    const other = await client.expect(200, `GET /v2/personal/web/referrers/${image}?artifactType=a/b`);
    assert.equal(other.headers.get("oci-filters-applied"), "artifactType");
    assert.deepEqual(((await other.json()) as { manifests: [] }).manifests, []);
  });

  test("tags and repositories are listed in pages", async (t) => {
    const client = await openRegistry(t);
    for (const tag of ["c", "a", "b"]) await client.pushImage("personal/web", tag);
    await client.pushImage("personal/api", "latest");
    const first = await client.expect(200, "GET /v2/personal/web/tags/list?n=2");
    assert.deepEqual(await first.json(), { name: "personal/web", tags: ["a", "b"] });
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1];
    assert.deepEqual(((await (await client.expect(200, `GET ${next}`)).json()) as { tags: string[] }).tags, ["c"]);
    assert.equal(await client.refused(404, "GET /v2/personal/none/tags/list"), "NAME_UNKNOWN");
    const catalog = await client.expect(200, "GET /v2/_catalog?n=1");
    assert.deepEqual(await catalog.json(), { repositories: ["personal/api"] });
    const rest = await client.expect(200, `GET ${/<([^>]+)>/.exec(catalog.headers.get("link") ?? "")?.[1]}`);
    assert.deepEqual(await rest.json(), { repositories: ["personal/web"] });
    const { body } = await client.platform.ask("GET /v1/registry/repositories");
    assert.deepEqual(
      body.repositories.map((one: { name: string; tags: { tag: string }[] }) => [
        one.name,
        one.tags.map(({ tag }) => tag),
      ]),
      [
        ["personal/api", ["latest"]],
        ["personal/web", ["a", "b", "c"]],
      ],
    );
  });

  test("a tag, a manifest with its tags, and an unreferenced blob are deleted", async (t) => {
    const client = await openRegistry(t);
    const digest = await client.pushImage("personal/web", "1");
    const { config } = (await (await client.expect(200, "GET /v2/personal/web/manifests/1")).json()) as {
      config: { digest: string };
    };
    assert.equal(await client.refused(409, `DELETE /v2/personal/web/blobs/${config.digest}`), "DENIED");
    await client.expect(202, "DELETE /v2/personal/web/manifests/1");
    await client.expect(200, `GET /v2/personal/web/manifests/${digest}`);
    await client.expect(202, `DELETE /v2/personal/web/manifests/${digest}`);
    assert.equal(await client.refused(404, `DELETE /v2/personal/web/manifests/${digest}`), "MANIFEST_UNKNOWN");
    await client.expect(202, `DELETE /v2/personal/web/blobs/${config.digest}`);
    assert.equal(await client.refused(404, `GET /v2/personal/web/blobs/${config.digest}`), "BLOB_UNKNOWN");
  });

  test("another organization's repository is 404, and a readonly token cannot push", async (t) => {
    const client = await openRegistry(t);
    const digest = await client.pushImage("personal/web", "1");
    await client.platform.ask("POST /v1/orgs", { body: { name: "other" } });
    const token = async (org: string, type: string): Promise<string> =>
      (await client.platform.ask(`POST /v1/orgs/${org}/tokens`, { body: { kind: type } })).body.token;
    const others = await token("other", "org");
    for (const target of ["GET /v2/personal/web/manifests/1", `GET /v2/personal/web/blobs/${digest}`])
      assert.equal(await client.refused(404, target, { token: others }), "NAME_UNKNOWN");
    await client.refused(404, "POST /v2/personal/web/blobs/uploads/", { token: others });
    // The bytes of another organization are not mounted, whoever knows the digest.
    await client.expect(202, `POST /v2/other/web/blobs/uploads/?mount=${digest}&from=personal/web`, { token: others });
    await client.expect(202, `POST /v2/other/web/blobs/uploads/?mount=${digest}`, { token: others });
    const reader = await token("personal", "readonly");
    await client.expect(200, "GET /v2/personal/web/manifests/1", { token: reader });
    assert.equal(await client.refused(403, "POST /v2/personal/web/blobs/uploads/", { token: reader }), "DENIED");
  });

  test("invalid repository names are refused", async (t) => {
    const client = await openRegistry(t);
    for (const name of [
      "Personal/web",
      "personal/we b",
      "personal/../x",
      "personal//web",
      `personal/${"a".repeat(300)}`,
    ])
      await client.ask(`GET /v2/${name.replaceAll(" ", "%20")}/tags/list`).then(async (answer) => {
        assert.ok(answer.status >= 400 && answer.status < 500, `${name}: ${answer.status}`);
      });
    assert.equal(await client.refused(400, "GET /v2/web/tags/list"), "NAME_INVALID");
    assert.equal(await client.refused(400, "GET /v2/personal/WEB/tags/list"), "NAME_INVALID");
  });

  test("an app's deploy token pushes to the app's repository and to no other", async (t) => {
    const client = await openRegistry(t);
    await client.platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    const { body } = await client.platform.ask("POST /v1/apps/web/deploy_token", { body: {} });
    const { token } = body as { token: string };
    await client.expect(202, "POST /v2/personal/web/blobs/uploads/", { token });
    await client.expect(202, "POST /v2/personal/web/worker/blobs/uploads/", { token });
    assert.equal(await client.refused(403, "POST /v2/personal/api/blobs/uploads/", { token }), "DENIED");
    assert.equal(await client.refused(403, "GET /v2/_catalog", { token }), "DENIED");
  });
});
