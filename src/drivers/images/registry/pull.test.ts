/** Pulls from a registry that works, is slow, broken, overloaded, or sends false data. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { ApiError } from "#core/errors.ts";
import type { HeldImage, PullProgress } from "#machines/runtime/image-source.ts";
import { digestOf } from "../blobs.ts";
import { ARCHITECTURE, MEDIA } from "../documents.ts";
import { dir, file, makeImage, NEVER, NOT_ROOT, openStore, tar, tempStore } from "../fixtures.ts";
import type { Images } from "../images.ts";
import { type Fault, send, testRegistry } from "./fixtures.ts";

/** Quick where a person would wait. */
const QUICK = { retry_ms: 1, retry_max_ms: 20, stall_ms: 200, answer_ms: 2000, resolve_ms: 10_000 };
const ORG = "org-a";

const noise = (bytes: number): string =>
  Array.from({ length: bytes / 8 }, (_, i) => ((i * 2654435761) % 99999989).toString(36).padStart(8, "z")).join("");
const base = tar(dir("etc"), file("etc/os-release", "NAME=test\n"), file("big", noise(400_000)));
const top = tar(file("app", "run me"));
const image = makeImage(
  [base, top],
  { Cmd: ["/app"], Env: ["A=b=c", "odd"], Labels: { version: "7" }, User: "1000:50" },
  gzipSync,
);

async function booted(images: Images, name: string, org_id = ORG): Promise<HeldImage> {
  const ref = await images.resolve(name, org_id, NEVER);
  return await images.hold({ id: `m-${org_id}`, org_id }, ref, NEVER);
}

async function failure(work: Promise<unknown>): Promise<ApiError> {
  const thrown = await work.then(
    () => assert.fail("it worked"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, String(thrown));
  return thrown;
}

suite("image pull", { skip: NOT_ROOT }, () => {
  test("a reference resolves to a digest, layers in order, a config and labels", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const name = registry.serve("team/web", "1", image);
    const ref = await images.resolve(name, ORG, NEVER);
    assert.deepEqual(ref, {
      registry: registry.host,
      repository: "team/web",
      tag: "1",
      digest: image.digest,
      labels: { version: "7" },
    });
    const { layers, config } = await images.hold({ id: "m1", org_id: ORG }, ref, NEVER);
    assert.equal(readFileSync(join(layers[0] ?? "", "etc/os-release"), "utf8"), "NAME=test\n");
    assert.equal(readFileSync(join(layers[1] ?? "", "app"), "utf8"), "run me");
    assert.deepEqual([config.cmd, config.env, config.user, config.entrypoint], [["/app"], { A: "b=c" }, "1000:50", []]);
    assert.deepEqual(readdirSync(join(images.dir, "ingest")), []);
    const before = registry.seen.length;
    assert.deepEqual(await images.resolve(name, ORG, NEVER), ref);
    await images.hold({ id: "m2", org_id: ORG }, ref, NEVER);
    assert.equal(registry.seen.length, before, "local documents are not fetched again");
  });

  test("of a multi-platform index this box's platform is pulled, and the digest is that of the index", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    registry.serve("multi", "x", image);
    const platform = (architecture: string) => ({ os: "linux", architecture });
    const other = {
      mediaType: MEDIA.manifest,
      digest: `sha256:${"1".repeat(64)}`,
      size: 1,
      platform: platform("s390x"),
    };
    const own = { ...other, digest: image.digest, size: image.manifest.length, platform: platform(ARCHITECTURE) };
    const index = (manifests: unknown[]) => Buffer.from(JSON.stringify({ schemaVersion: 2, manifests }));
    registry.manifest("multi", "1", index([other, own]), MEDIA.index);
    registry.manifest("multi", "none", index([other]), MEDIA.index);
    const { ref } = await booted(images, `${registry.host}/multi:1`);
    assert.equal(ref.digest, digestOf(index([other, own])));
    const refused = await failure(images.resolve(`${registry.host}/multi:none`, ORG, NEVER));
    assert.match(refused.message, /is not for linux\/.*it is for linux\/s390x/);
  });

  test("zstd layers and references by digest are pulled", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const packed = makeImage([base], {}, zstdCompressSync);
    registry.serve("z", "1", packed);
    const { ref } = await booted(images, `${registry.host}/z@${packed.digest}`);
    assert.deepEqual([ref.tag, ref.digest], [undefined, packed.digest]);
    assert.equal((await images.resolve(`${registry.host}/z:9@${packed.digest}`, ORG, NEVER)).digest, packed.digest);
  });

  test("a cut or stalled layer download resumes where it stopped", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const name = registry.serve("cut", "1", image);
    const [, big = ""] = [...image.blobs.keys()];
    const bytes = image.blobs.get(big) ?? Buffer.alloc(0);
    let times = 0;
    registry.fault = ({ path, range }, response) => {
      if (!path.endsWith(big) || ++times > 3) return false;
      const from = Number(range?.match(/\d+/)?.[0] ?? 0);
      response.writeHead(from > 0 ? 206 : 200, {
        "content-length": bytes.length - from,
        ...(from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
      });
      response.write(bytes.subarray(from, from + 20_000), () => {
        // Cut, stalled, cut.
        if (times !== 2) response.destroy();
      });
      return true;
    };
    await booted(images, name);
    const ranges = registry.seen.filter(({ path }) => path.endsWith(big)).map(({ range }) => range);
    assert.equal(ranges.length, 4);
    assert.equal(ranges[0], undefined);
    // A cut may lose bytes in flight; those of the stalled response have certainly arrived.
    assert.ok(Number(/\d+/.exec(ranges[3] ?? "")?.[0]) >= 20_000, ranges.join(" "));
  });

  test("a registry without range requests is read from the beginning", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const name = registry.serve("whole", "1", image);
    const [, big = ""] = [...image.blobs.keys()];
    const bytes = image.blobs.get(big) ?? Buffer.alloc(0);
    registry.fault = ({ path }, response, time) => {
      if (!path.endsWith(big)) return false;
      if (time > 1) send(response, bytes, undefined);
      else
        response
          .writeHead(200, { "content-length": bytes.length })
          .write(bytes.subarray(0, 10_000), () => response.destroy());
      return true;
    };
    await booted(images, name);
  });

  const LIES: [what: string, fault: Fault, why: RegExp][] = [
    ["a layer with a flipped byte", flipped("blobs", 2), /a layer is not what its digest .* says/],
    ["a config with a flipped byte", flipped("blobs", 1), /not what its digest/],
    ["a manifest with a flipped byte", flipped("manifests", 1), /not what its digest|not JSON/],
    ["a manifest that never ends", endless("manifests"), /limit document_bytes/],
    [
      "a manifest that says it is huge",
      (seen, response) =>
        seen.path.includes("manifests") && !!response.writeHead(200, { "content-length": 2 ** 40 }).end(),
      /limit document_bytes/,
    ],
    [
      "a manifest that is none",
      (seen, response) => seen.path.includes("manifests") && !!response.writeHead(200).end("<html>"),
      /not JSON/,
    ],
  ];
  for (const [what, fault, why] of LIES) {
    test(`pull is refused: ${what}`, async (t) => {
      const registry = await testRegistry(t);
      const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
      const name = registry.serve("lies", "1", image);
      registry.fault = fault;
      const refused = await failure(booted(images, name));
      assert.equal(refused.code, "image_refused", refused.message);
      assert.match(refused.message, why);
      registry.fault = undefined;
      assert.equal((await booted(images, name)).layers.length, 2, "and works when it is well again");
    });
  }

  const ANSWERS: [status: number, code: string, times: number][] = [
    [401, "image_refused", 1],
    [403, "image_refused", 1],
    [404, "image_not_found", 1],
    [418, "image_refused", 1],
    [429, "registry_unreachable", 5],
    [500, "registry_unreachable", 5],
    [503, "registry_unreachable", 5],
  ];
  test("an error of a registry names the registry, the repository, the tag and what to do", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    for (const [status, code, times] of ANSWERS) {
      registry.seen.length = 0;
      registry.fault = (_, response) => !!response.writeHead(status, { "retry-after": "1" }).end();
      const refused = await failure(images.resolve(`${registry.host}/team/web:9`, ORG, NEVER));
      assert.equal(refused.code, code, String(status));
      assert.equal(registry.seen.length, times, String(status));
      for (const part of [registry.host, "team/web", '"9"']) assert.ok(refused.message.includes(part), refused.message);
      assert.ok(refused.extras.hint || status === 418);
      assert.ok(refused.http >= 400 && refused.http < 500);
    }
    registry.fault = undefined;
    assert.equal((await failure(images.resolve("127.0.0.1:1/a:1", ORG, NEVER))).code, "registry_unreachable");
  });

  test("a registry that answers 429 or 502 is retried until it succeeds", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const name = registry.serve("busy", "1", image);
    registry.fault = (_, response, time) => time < 3 && !!response.writeHead(time === 1 ? 429 : 502).end();
    await booted(images, name);
  });

  test("a registry that does not respond in time fails the resolve with the limit's name", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: { ...QUICK, resolve_ms: 300 } });
    registry.fault = () => true;
    const late = await failure(images.resolve(`${registry.host}/slow:1`, ORG, NEVER));
    assert.deepEqual([late.code, /limit resolve_ms/.test(late.message)], ["registry_unreachable", true]);
    const stop = new AbortController();
    const pending = images.resolve(`${registry.host}/slow:1`, ORG, stop.signal);
    stop.abort(new Error("gone"));
    await assert.rejects(pending, /gone/);
  });

  test("bearer tokens are fetched with the configured login, and neither is sent to other hosts", async (t) => {
    const registry = await testRegistry(t);
    const elsewhere = await testRegistry(t);
    const config = join(tempStore(t), "config.json");
    const auth = Buffer.from("user:pass:word").toString("base64");
    writeFileSync(config, JSON.stringify({ auths: { [registry.host]: { auth } } }));
    const allow_private = [registry.host, elsewhere.host];
    const images = await openStore(t, { allow_private, limits: QUICK, registry_config: config });
    const name = registry.serve("private/web", "1", image);
    for (const bytes of image.blobs.values()) elsewhere.blob(bytes);
    registry.fault = ({ path, authorization }, response) => {
      if (path === "/token") {
        assert.equal(authorization, `Basic ${auth}`);
        response.writeHead(200).end(JSON.stringify({ token: "t0ken", expires_in: 300 }));
      } else if (authorization !== "Bearer t0ken") {
        const realm = `Bearer realm="http://${registry.host}/token",service="test",scope="repository:all:*"`;
        response.writeHead(401, { "www-authenticate": realm }).end();
      } else if (path.includes("/blobs/")) {
        response.writeHead(307, { location: `http://${elsewhere.host}${path}` }).end();
      } else return false;
      return true;
    };
    await booted(images, name);
    assert.equal(elsewhere.seen.length, 3);
    assert.ok(elsewhere.seen.every(({ authorization }) => authorization === undefined));
    writeFileSync(config, "{}");
    registry.fault = (_, response) => !!response.writeHead(401).end();
    const refused = await failure(images.resolve(`${registry.host}/private/web:2`, ORG, NEVER));
    assert.match(`${refused.message} ${refused.extras.hint}`, /docker login 127.0.0.1/);
    assert.doesNotMatch(JSON.stringify(refused.extras), /pass:word|t0ken/);
  });

  test("basic credentials are sent, and unsafe redirects are refused", async (t) => {
    const registry = await testRegistry(t);
    const config = join(tempStore(t), "config.json");
    writeFileSync(config, JSON.stringify({ auths: { [`http://${registry.host}`]: { username: "u", password: "p" } } }));
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK, registry_config: config });
    const name = registry.serve("basic", "1", image);
    registry.fault = ({ authorization }, response) =>
      authorization !== `Basic ${Buffer.from("u:p").toString("base64")}` &&
      !!response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
    await booted(images, name);
    registry.fault = (_, response) => !!response.writeHead(302, { location: "http://10.0.0.1/secret" }).end();
    assert.match((await failure(images.resolve(`${registry.host}/b:1`, ORG, NEVER))).message, /not safe to follow/);
    registry.fault = ({ path }, response) => !!response.writeHead(302, { location: path }).end();
    assert.match((await failure(images.resolve(`${registry.host}/b:1`, ORG, NEVER))).message, /limit redirects/);
    registry.fault = (_, response) => !!response.writeHead(302, { location: "http://[" }).end();
    assert.match(
      (await failure(images.resolve(`${registry.host}/b:1`, ORG, NEVER))).message,
      /an address that is none/,
    );
  });

  test("a token service that sends an endless response is cut off", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const talking = endless("/token");
    registry.fault = (seen, response, time) => {
      if (talking(seen, response, time)) return true;
      const realm = `Bearer realm="http://${registry.host}/token"`;
      return !!response.writeHead(401, { "www-authenticate": realm }).end();
    };
    const refused = await failure(images.resolve(`${registry.host}/b:1`, ORG, NEVER));
    assert.deepEqual([refused.code, /gave no token/.test(refused.message)], ["image_refused", true]);
  });

  test("ten concurrent starts fetch a layer once, and progress is reported", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: QUICK });
    const name = registry.serve("many", "1", image);
    const ref = await images.resolve(name, ORG, NEVER);
    await Promise.all(Array.from({ length: 10 }, (_, i) => images.hold({ id: `m${i}`, org_id: ORG }, ref, NEVER)));
    const blobs = registry.seen.filter(({ path }) => path.includes("/blobs/")).map(({ path }) => path);
    assert.equal(new Set(blobs).size, blobs.length, blobs.join("\n"));
    const progress: PullProgress[] = [];
    for await (const update of images.pull(registry.serve("more", "1", makeImage([base, tar(file("x"))])), ORG, NEVER))
      progress.push(update);
    assert.deepEqual([progress[0]?.state, progress.at(-1)?.state], ["resolving", "done"]);
    assert.equal(progress.at(-1)?.image?.complete, true);
    assert.ok(progress.some(({ state }) => state === "here") && progress.some(({ state }) => state === "unpacking"));
  });

  test("knowing a layer's digest gives no access to it: another organization must provide the bytes", async (t) => {
    const registry = await testRegistry(t);
    const theft = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host, theft.host], limits: QUICK });
    const secret = registry.serve("secret", "1", image);
    const { layers } = await booted(images, secret, "org-a");
    const config = image.config;
    theft.blob(config);
    theft.manifest("theft", "1", image.manifest);
    const refused = await failure(booted(images, `${theft.host}/theft:1`, "org-b"));
    assert.equal(refused.code, "image_not_found");
    // A layer of its own under the hash of another organization's is detected, too.
    const other = makeImage([top], {}, gzipSync);
    const lying = Buffer.from(other.manifest.toString().replaceAll(digestOf(other.config), digestOf(config)));
    for (const bytes of other.blobs.values()) theft.blob(bytes);
    theft.manifest("lying", "1", lying);
    assert.match(
      (await failure(booted(images, `${theft.host}/lying:1`, "org-b"))).message,
      /config names 2 layers|layer/,
    );
    const again = await booted(images, secret, "org-b");
    assert.deepEqual(again.layers, layers, "with the bytes, the same folders are used");
  });
});

function flipped(kind: string, which: number): Fault {
  let seen = 0;
  return ({ path }, response) => {
    if (!path.includes(kind) || ++seen !== which) return false;
    const digest = path.split("/").at(-1) ?? "";
    const bytes = Buffer.from(kind === "manifests" ? image.manifest : (image.blobs.get(digest) ?? ""));
    bytes[30] = (bytes[30] ?? 0) ^ 1;
    const extra = kind === "manifests" ? { "docker-content-digest": image.digest } : {};
    response.writeHead(200, { "content-length": bytes.length, ...extra }).end(bytes);
    return true;
  };
}

function endless(kind: string): Fault {
  return ({ path }, response) => {
    if (!path.includes(kind)) return false;
    response.writeHead(200);
    const more = (): void => {
      if (!response.destroyed) response.write(Buffer.alloc(256 * 1024, " "), more);
    };
    more();
    return true;
  };
}
