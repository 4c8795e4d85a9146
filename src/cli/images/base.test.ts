import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import type { Context } from "../verb.ts";
import { imagesBase } from "./base.ts";
import { BASES, type BaseRecipe } from "./base-recipes.ts";
import { bootstrap } from "./debian-bootstrap.ts";
import { ociArchive } from "./oci-archive.ts";

const missing = (program: string): string | undefined =>
  spawnSync("which", [program]).status === 0 ? undefined : `${program} is not installed`;

function folderOf(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "hangar-base-test-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A layer of GNU tar's, with one file. */
function layerIn(dir: string): string {
  writeFileSync(join(dir, "hello"), "hello\n");
  const layer = join(dir, "layer.tar");
  assert.equal(spawnSync("tar", ["-C", dir, "--mtime=@0", "-cf", layer, "hello"]).status, 0);
  return layer;
}

async function bytesOf(layer: string, config: BaseRecipe["config"]): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await ociArchive(layer, config)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const context = { say: () => {}, client: { call: async () => ({}) } } as unknown as Context;
const recipe = BASES["debian"] as BaseRecipe;

suite("base images", () => {
  test("the same layer and config give the same archive, another config another one", async (t) => {
    const layer = layerIn(folderOf(t));
    const first = await bytesOf(layer, { Cmd: ["bash"] });
    assert.ok(first.equals(await bytesOf(layer, { Cmd: ["bash"] })));
    assert.ok(!first.equals(await bytesOf(layer, { Cmd: ["sh"] })));
  });

  test("skopeo reads the archive, with its layer and config", { skip: missing("skopeo") }, async (t) => {
    const dir = folderOf(t);
    const archive = join(dir, "image.tar");
    writeFileSync(archive, await bytesOf(layerIn(dir), { Cmd: ["bash"], Env: ["A=b"] }));
    const { status, stdout, stderr } = spawnSync("skopeo", ["inspect", "--config", `oci-archive:${archive}`], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    const { config, rootfs, history } = JSON.parse(stdout) as {
      config: BaseRecipe["config"];
      rootfs: { diff_ids: string[] };
      history: object[];
    };
    assert.deepEqual(config.Cmd, ["bash"]);
    assert.ok(config.Env?.includes("A=b") && config.Env.some((entry) => entry.startsWith("PATH=")));
    assert.equal(rootfs.diff_ids.length, 1);
    assert.equal(history.length, rootfs.diff_ids.length, "buildah builds on it");
  });

  test("an unknown base, and a package that is none, are refused before anything is made", async () => {
    const input = { args: ["alpine"], rest: [], options: {} };
    await assert.rejects(imagesBase.run(context, input), /there is no base alpine: debian, node, python, /);
    const wanted = { suite: "bookworm", mirror: undefined, include: ["--hook=x"] };
    await assert.rejects(bootstrap(context, recipe, wanted), /--hook=x is neither a release nor a package/);
  });

  test("an archive is written without a platform, and where it cannot be is said before anything is made", async (t) => {
    const dir = folderOf(t);
    const run = (options: object) => imagesBase.run(context, { args: ["static"], rest: [], options: { ...options } });
    await assert.rejects(run({ output: join(dir, "none/base.tar") }), /there is no folder .*none/);
    await assert.rejects(run({ output: join(dir, "base.tar"), name: "x:1" }), /--name belongs to an import/);
    await assert.rejects(
      run({ output: join(dir, "base.tar"), mirror: "http://127.0.0.1:9/debian", suite: "bookworm" }),
      /mmdebstrap/,
    );
    assert.deepEqual(readdirSync(dir), [], "nothing is left");
  });

  test("where mmdebstrap is missing the error says what to install", async (t) => {
    const path = process.env["PATH"];
    t.after(() => {
      process.env["PATH"] = path;
    });
    process.env["PATH"] = folderOf(t);
    const wanted = { suite: "bookworm", mirror: undefined, include: [] };
    await assert.rejects(bootstrap(context, recipe, wanted), /mmdebstrap is not installed here/);
  });

  test("a mirror that does not answer fails with mmdebstrap's own error", { skip: missing("mmdebstrap") }, async () => {
    const wanted = { suite: "bookworm", mirror: "http://127.0.0.1:9/debian", include: [] };
    await assert.rejects(bootstrap(context, recipe, wanted), /mmdebstrap ended with \d+:[\s\S]*127\.0\.0\.1/);
  });
});
