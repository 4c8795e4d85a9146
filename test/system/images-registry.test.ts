/** Images from a real registry (Debian's docker-registry), pushed by a real tool (skopeo), over lines that break. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { digestOf } from "#drivers/images/blobs.ts";
import { dir, file, makeImage, NEVER, openStore, symlink, tar, writeLayout } from "#drivers/images/fixtures.ts";
import { freePort } from "#proxy/fixtures.ts";
import { random, runs, seed, tempDir, until } from "../support.ts";
import { startProgram } from "./child.ts";

const missing = ["docker-registry", "skopeo"].filter((name) => spawnSync("which", [name]).status !== 0);
const skip =
  process.getuid?.() !== 0 ? "it needs root" : missing.length > 0 ? `these are missing: ${missing.join(", ")}` : false;

/** Bytes that do not compress, the same ones every time. */
function noise(bytes: number, from: number): string {
  const next = random(from);
  return Array.from({ length: bytes }, () => String.fromCharCode(33 + Math.floor(next() * 90))).join("");
}

/** A registry with an empty disk; `user` is who may read, when not everyone. */
async function startRegistry(t: TestContext, user?: string): Promise<string> {
  const folder = tempDir("hangar-registry");
  const port = await freePort();
  const auth =
    user === undefined ? [] : ["auth:", "  htpasswd:", "    realm: test", `    path: ${join(folder, "users")}`];
  if (user !== undefined) writeFileSync(join(folder, "users"), user);
  const config = [
    "version: 0.1",
    "log: {level: error, accesslog: {disabled: true}}",
    `storage: {filesystem: {rootdirectory: ${join(folder, "data")}}}`,
    `http: {addr: "127.0.0.1:${port}"}`,
    ...auth,
  ];
  writeFileSync(join(folder, "config.yml"), `${config.join("\n")}\n`);
  const child = spawn("docker-registry", ["serve", join(folder, "config.yml")], { stdio: "ignore" });
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const host = `127.0.0.1:${port}`;
  await until("the registry answers", async () => await fetch(`http://${host}/v2/`).catch(() => undefined));
  return host;
}

function push(layout: string, to: string, ...options: string[]): void {
  const args = ["copy", "--insecure-policy", "--dest-tls-verify=false", ...options, `oci:${layout}`, `docker://${to}`];
  const { status, stderr } = spawnSync("skopeo", args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

/** Passes bytes on to `host` and cuts every connection after some of them. */
async function badLine(t: TestContext, host: string, next: () => number): Promise<{ host: string; cuts(): number }> {
  const [name = "", port = ""] = host.split(":");
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), name);
    open.add(client).add(upstream);
    let left = 30_000 + Math.floor(next() * 400_000);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    client.on("error", end).on("close", end).pipe(upstream);
    upstream.on("error", end).on("close", end);
    upstream.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left > 0) return void client.write(chunk);
      cuts++;
      client.write(chunk.subarray(0, Math.max(0, chunk.length + left)), end);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts };
}

const layers = [
  tar(dir("etc"), file("etc/name", "lower"), file("big", noise(1_500_000, 1)), symlink("link", "big")),
  tar(file("etc/name", "upper"), file(".wh.link", "")),
];
const image = makeImage(layers, { Entrypoint: ["/big"], Labels: { of: "a test" } });

suite("pulls from a real registry", { skip }, () => {
  test("images pushed by skopeo are pulled with the registry's digest, in all three formats", async (t) => {
    const host = await startRegistry(t);
    const layout = writeLayout(join(tempDir(), "layout"), image);
    push(layout, `${host}/team/app:oci`);
    push(layout, `${host}/team/app:docker`, "--format", "v2s2");
    push(layout, `${host}/team/app:zstd`, "--dest-compress-format", "zstd", "--dest-compress");
    const images = await openStore(t, { allow_private: [host] });
    for (const tag of ["oci", "docker", "zstd"]) {
      const ref = await images.resolve(`${host}/team/app:${tag}`, "org", NEVER);
      const accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
      const told = await fetch(`http://${host}/v2/team/app/manifests/${tag}`, { method: "HEAD", headers: { accept } });
      assert.equal(ref.digest, told.headers.get("docker-content-digest"), tag);
      assert.deepEqual(ref.labels, { of: "a test" });
      const { layers: folders, config } = await images.hold({ id: `m-${tag}`, org_id: "org" }, ref, NEVER);
      assert.deepEqual([config.entrypoint, folders.length], [["/big"], 2]);
      assert.equal(readFileSync(join(folders[1] ?? "", "etc/name"), "utf8"), "upper");
    }
    assert.equal(readdirSync(join(images.dir, "layers")).length, 4, "the same two layers, and a record of each");
  });

  test("a connection that breaks repeatedly is resumed, byte for byte", async (t) => {
    const next = random(seed(t));
    const host = await startRegistry(t);
    push(writeLayout(join(tempDir(), "layout"), image), `${host}/cut:1`);
    for (let round = 0; round < runs(2); round++) {
      const line = await badLine(t, host, next);
      const images = await openStore(t, { allow_private: [line.host], limits: { retry_ms: 1, tries: 50 } });
      const ref = await images.resolve(`${line.host}/cut:1`, "org", NEVER);
      const { layers: folders } = await images.hold({ id: "m", org_id: "org" }, ref, NEVER);
      assert.equal(digestOf(readFileSync(join(folders[0] ?? "", "big"))), digestOf(noise(1_500_000, 1)));
      assert.ok(line.cuts() > 0);
      t.diagnostic(`${line.cuts()} cuts`);
    }
  });

  test("a private registry admits a login, and the error says how to add one", async (t) => {
    const folder = tempDir();
    // `user` with the password `secret`, hashed as the registry wants it.
    const host = await startRegistry(t, "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n");
    push(writeLayout(join(folder, "layout"), image), `${host}/private:1`, "--dest-creds", "user:secret");
    const stranger = await openStore(t, { allow_private: [host] });
    await assert.rejects(stranger.resolve(`${host}/private:1`, "org", NEVER), {
      code: "image_refused",
      message: /denied access to the image/,
    });
    const auth = Buffer.from("user:secret").toString("base64");
    const registry_config = join(folder, "config.json");
    writeFileSync(registry_config, JSON.stringify({ auths: { [host]: { auth } } }));
    const images = await openStore(t, { allow_private: [host], registry_config });
    const ref = await images.resolve(`${host}/private:1`, "org", NEVER);
    assert.equal((await images.hold({ id: "m", org_id: "org" }, ref, NEVER)).layers.length, 2);
  });

  test("after a kill at any moment the image store is consistent and has no leftovers", async (t) => {
    const next = random(seed(t));
    const host = await startRegistry(t);
    push(writeLayout(join(tempDir(), "layout"), image), `${host}/kill:1`);
    const data = tempDir("hangar-kill");
    for (let round = 0; round < runs(3, 60); round++) {
      const child = startProgram(t, "test/system/images-puller.ts", [data, `${host}/kill:1`]);
      await child.until(/^begin/);
      await new Promise((resolve) => setTimeout(resolve, next() * 250));
      await child.kill();
      const images = await openStore(t, { allow_private: [host], dir: data });
      assert.ok(readdirSync(join(data, "images/ingest")).every((name) => name.startsWith("part-")));
      const ref = await images.resolve(`${host}/kill:1`, "org", NEVER);
      const { layers: folders } = await images.hold({ id: "m", org_id: "org" }, ref, NEVER);
      assert.equal(digestOf(readFileSync(join(folders[0] ?? "", "big"))), digestOf(noise(1_500_000, 1)));
      assert.equal(readFileSync(join(folders[1] ?? "", "etc/name"), "utf8"), "upper");
      await images.close();
      // The next round begins from nothing, or from what the kill left.
      if (round % 2 === 0) rmSync(join(data, "images"), { recursive: true });
    }
  });
});
