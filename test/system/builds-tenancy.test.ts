/** What an organization, or a token of another app, can do to builds that are not its own: real builds by buildah, over the API. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { ALL_ACTIONS } from "#core/caveats.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { digestOf, tarOf } from "./build-context.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const LONGEST_MS = 10 * 60_000;
const SECRET = "the-secret-of-acme";
const BASE = "acme-base:1";
const DOCKERFILE = `FROM ${BASE}
COPY marker /marker
RUN --mount=type=cache,target=/cache cat /cache/* 2>/dev/null; echo ${"of-$(cat /marker)"} > /cache/found
RUN --mount=type=secret,id=token test -s /run/secrets/token && echo "secret: $(cat /run/secrets/token)"
`;

suite("builds of others", { skip: buildahMissing() ?? realMachinesMissing() }, () => {
  const dir = tempDir();
  const ends: (() => unknown)[] = [];
  let machines: ForeignMachines;
  const tokens = { acme: "", globex: "", blog: "" };

  const as = (token: string) => (request: string, body?: object) =>
    machines.ask(request, { token, ...(body ? { body } : {}) });

  async function send(token: string, app: string, contents: readonly Buffer[]): Promise<number> {
    const { status } = await fetch(`${machines.base_url}/v1/apps/${app}/builds/files`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/x-tar" },
      body: new Uint8Array(tarOf(contents)),
    });
    return status;
  }

  async function begin(token: string, app: string, files: Record<string, string>) {
    const contents = Object.values(files).map((text) => Buffer.from(text));
    assert.equal(await send(token, app, contents), 200);
    const entries = Object.keys(files).map((path, i) => ({ path, sha256: digestOf(contents[i] ?? Buffer.alloc(0)) }));
    const headers = { "idempotency-key": "build-1" };
    return await machines.ask(`POST /v1/apps/${app}/builds`, {
      token,
      headers,
      body: { files: entries, secrets: { token: SECRET } },
    });
  }

  async function ended(token: string, app: string, id: string) {
    const look = async () => {
      const { body } = await as(token)(`GET /v1/apps/${app}/builds/${id}`);
      return ["complete", "failed", "cancelled"].includes(body.state as string) ? body : undefined;
    };
    const build = await until(`build ${id} ends`, look, { every_ms: 100, limit_ms: LONGEST_MS });
    const { body } = await as(token)(`GET /v1/apps/${app}/builds/${id}/logs`);
    return { ...build, log: body.log as string } as { state: string; digest: string; log: string };
  }

  before(async () => {
    mkdirSync(join(dir, "root"));
    busyboxLayer(join(dir, "root"));
    command("tar", "-C", join(dir, "root"), "-cf", join(dir, "root.tar"), ".");
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
    for (const org of ["acme", "globex"] as const) {
      await machines.ask("POST /v1/orgs", { body: { slug: org, name: org } });
      tokens[org] = (await machines.ask(`POST /v1/orgs/${org}/tokens`, { body: { kind: "org" } })).body.token as string;
    }
    for (const [org, app_name] of [
      ["acme", "shop"],
      ["acme", "blog"],
      ["globex", "evil"],
    ] as const)
      assert.equal((await as(tokens[org])("POST /v1/apps", { app_name, org_slug: org })).status, 201);
    tokens.blog = serialize(attenuate(parse(tokens.acme), [{ type: "apps", apps: { blog: ALL_ACTIONS } }]));
    const imported = await fetch(`${machines.base_url}/v1/images/import?name=${BASE}&org_slug=acme`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens.acme}`, "content-type": "application/x-tar" },
      body: new Uint8Array(readFileSync(join(dir, "root.tar"))),
    });
    assert.equal(imported.status, 201, await imported.text());
  });

  after(async () => {
    for (const end of ends) await end();
    rmSync(dir, { recursive: true, force: true });
  });

  test("a build, its log, its files, its cache and its image are of its own app and organization alone", async () => {
    const marker = "shop-marker";
    const begun = await begin(tokens.acme, "shop", { Dockerfile: DOCKERFILE, marker });
    assert.equal(begun.status, 201, begun.text);
    const id = begun.body.id as string;
    const sha256 = digestOf(Buffer.from(marker));

    // While it runs and afterwards: nothing of it can be seen or stopped from elsewhere.
    const attacks = async (): Promise<void> => {
      for (const [token, own] of [
        [tokens.globex, "evil"],
        [tokens.blog, "blog"],
      ] as const) {
        const ask = as(token);
        for (const app of ["shop", own])
          for (const request of ["GET ", "GET /logs", "GET /logs?follow=true", "POST /cancel"]) {
            const [method, rest = ""] = request.split(" ");
            const { status } = await ask(`${method} /v1/apps/${app}/builds/${id}${rest}`);
            assert.ok([403, 404].includes(status), `${own}: ${request} of ${app} is ${status}`);
          }
        const list = await ask(`GET /v1/apps/${own}/builds`);
        assert.doesNotMatch(list.text, new RegExp(id));
        const { body } = await ask(`POST /v1/apps/${own}/builds/files/missing`, { files: [sha256] });
        assert.deepEqual(body.missing, [sha256], `${own} is not told which files others have`);
        const stolen = await ask(`POST /v1/apps/${own}/builds`, { files: [{ path: "Dockerfile", sha256 }] });
        assert.equal(stolen.body.status, "build_files_missing", stolen.text);
      }
    };
    await attacks();
    const build = await ended(tokens.acme, "shop", id);
    assert.equal(build.state, "complete", build.log);
    assert.doesNotMatch(build.log, new RegExp(SECRET));
    await attacks();

    // A key of another is not a way to its answer.
    const other = await begin(tokens.blog, "blog", { Dockerfile: DOCKERFILE, marker: "blog-marker" });
    assert.notEqual(other.body.id, id);
    const blog = await ended(tokens.blog, "blog", other.body.id as string);
    assert.equal(blog.state, "complete", blog.log);
    assert.doesNotMatch(blog.log, /of-shop-marker|Using cache/, "its cache is its own");

    // Names of images are of an organization: neither what a build began with nor what it made is another's.
    const foreign = await begin(tokens.globex, "evil", { Dockerfile: DOCKERFILE, marker: "evil" });
    assert.equal(foreign.status, 201, foreign.text);
    const evil = await ended(tokens.globex, "evil", foreign.body.id as string);
    assert.equal(evil.state, "failed", evil.log);
    assert.doesNotMatch(evil.log, /of-shop-marker/);
    for (const image of [`builds/shop:latest@${build.digest}`, "builds/shop:latest", BASE]) {
      const { status, text } = await as(tokens.globex)("POST /v1/apps/evil/machines", {
        config: { image },
        skip_launch: true,
      });
      assert.ok(status >= 400 && status < 500, `${image}: ${status} ${text}`);
    }
  });
});
