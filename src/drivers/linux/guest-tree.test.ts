import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { callsMissing } from "./calls.ts";
import { GuestTree } from "./guest-tree.ts";

/** A tree with links of every kind in it, and a file beside it that no path in the tree may reach. */
function hostile() {
  const dir = mkdtempSync(join(tmpdir(), "hangar-tree-"));
  const root = join(dir, "root");
  const outside = join(dir, "outside");
  for (const folder of ["etc", "data/deep"]) mkdirSync(join(root, folder), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(outside, "secret"), "host");
  writeFileSync(join(root, "etc/real"), "image");
  const links: Record<string, string> = {
    absolute: outside,
    up: "../../../../../..",
    "file-out": join(outside, "secret"),
    "file-up": "../outside/secret",
    inside: "/data",
    "file-inside": "/etc/real",
    dangling: "/data/fresh",
    "dangling-out": join(outside, "made"),
    "dangling-deep": "/nowhere/fresh",
    magic: "/proc/self/root",
    loop: "loop",
  };
  for (const [name, to] of Object.entries(links)) symlinkSync(to, join(root, name));
  const inner = (path: string): string => readFileSync(join(root, path), "utf8");
  return { dir, root, outside, inner };
}

suite("writes into a hostile root file system", { skip: callsMissing() }, () => {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const file = { content: Buffer.from("ours"), mode: 0o644, uid, gid };

  test("a link is created unless something has its name", (t) => {
    const { dir, root } = hostile();
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    using tree = new GuestTree(root);
    for (const name of ["/second", "/second", "/data", "/dangling-out"] as const) tree.link(name, "data", uid, gid);
    assert.equal(readlinkSync(join(root, "second")), "data");
    assert.equal(tree.kind("/data"), "folder");
    assert.equal(readlinkSync(join(root, "dangling-out")), join(dir, "outside/made"));
  });

  test("links are resolved inside the root, and no link leads out, dangling or not", (t) => {
    const { dir, root, outside, inner } = hostile();
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    using tree = new GuestTree(root);

    // The link's target is resolved as it would be inside the machine.
    for (const [path, lands] of [
      ["/file-inside", "etc/real"],
      ["/inside/a/b", "data/a/b"],
      ["/dangling", "data/fresh"],
      ["/up/etc/real", "etc/real"],
      ["/../../../etc/real", "etc/real"],
    ] as const) {
      tree.write(path, file);
      assert.equal(inner(lands), "ours", path);
    }
    // `/tmp/…/outside` is a place that this tree does not have, and so is what lies above its root.
    for (const path of [
      "/file-out",
      "/file-up",
      "/absolute/secret",
      "/dangling-out",
      "/dangling-deep",
      "/magic/etc/real",
      "/loop",
      "/loop/x",
    ]) {
      assert.throws(() => tree.write(path, file), Error, path);
    }
    assert.equal(readFileSync(join(outside, "secret"), "utf8"), "host");
    assert.throws(() => readFileSync(join(outside, "made")), { code: "ENOENT" });
  });

  test("replace() removes a link at its path instead of writing through it", (t) => {
    const { dir, root, outside, inner } = hostile();
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    using tree = new GuestTree(root);
    for (const path of ["/file-inside", "/file-out", "/dangling-out"]) {
      tree.replace(path, file);
      assert.equal(inner(path), "ours", path);
    }
    assert.equal(inner("etc/real"), "image");
    assert.equal(readFileSync(join(outside, "secret"), "utf8"), "host");
    assert.throws(() => tree.replace("/data", file), /is a folder in the image/);
  });

  test("a dangling link on the path is reported with its target", (t) => {
    const { dir, root } = hostile();
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    using tree = new GuestTree(root);
    assert.throws(() => tree.write("/dangling-deep/x", file), /\/dangling-deep is a link in the image, to \/nowhere/);
    assert.throws(() => tree.write("/dangling-deep", file), /\/dangling-deep is a link in the image, to a place/);
  });
});
