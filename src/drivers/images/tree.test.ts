/** Layers that try to escape (C3): whatever they contain, nothing outside their folder changes. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { until } from "../../../test/support.ts";
import {
  dir,
  entry,
  file,
  forged,
  hardlink,
  NOT_ROOT,
  openBelow,
  symlink,
  tar,
  tempStore,
  unpackTar,
} from "./fixtures.ts";

const record = (text: string): Buffer => Buffer.from(text, "latin1");

/** An extended header with these records. */
function pax(type: "x" | "g", records: Buffer): Buffer {
  const header = entry({ path: "pax", body: records.toString("latin1") });
  return forged(header, (bytes) => bytes.write(type, 156));
}

const named = (path: string): Buffer => {
  const rest = ` path=${path}\n`;
  const length = String(rest.length + String(rest.length + 3).length).length + rest.length;
  return pax("x", record(`${length}${rest}`));
};
const typed = (path: string, type: string): Buffer => forged(file(path, ""), (bytes) => bytes.write(type, 156));
const sized = (path: string, size: string): Buffer =>
  forged(file(path, ""), (bytes) => bytes.write(size.padStart(11, "0"), 124));

/** Refused layers, with the reason. `OUT` is a folder beside the layer's. */
const REFUSED: [what: string, archive: (out: string) => Buffer, why: RegExp][] = [
  ["a path with ..", () => tar(file("../escaped")), /points outside the layer/],
  ["a path with .. in the middle", () => tar(dir("a"), file("a/../../escaped")), /points outside/],
  ["an absolute path with ..", () => tar(file("/../escaped")), /points outside/],
  [".. in an extended header", () => tar(named("../escaped"), file("innocent")), /points outside/],
  ["a folder called ..", () => tar(dir("..")), /points outside/],
  ["a hard link to a file of the host", () => tar(hardlink("passwd", "/etc/passwd")), /no file of this layer/],
  ["a hard link with ..", () => tar(hardlink("x", "../../../etc/passwd")), /points outside/],
  ["a hard link to a folder", () => tar(dir("a"), hardlink("b", "a")), /no file of this layer/],
  ["a hard link to what comes later", () => tar(hardlink("b", "a"), file("a")), /no file of this layer/],
  ["a hard link through a link out", (out) => tar(symlink("l", out), hardlink("x", "l/file")), /no file of this layer/],
  ["a hard link to a whiteout", () => tar(file(".wh.a", ""), hardlink("b", "a")), /no file of this layer/],
  ["a path through a file", () => tar(file("a"), file("a/b")), /which is no folder/],
  ["links in a circle", () => tar(symlink("a", "b"), symlink("b", "a"), file("a/x")), /too many links/],
  ["a link to itself", () => tar(symlink("a", "a"), file("a/x")), /too many links/],
  ["a link to nothing", () => tar(symlink("a", "")), /link to nothing/],
  ["a whiteout of nothing", () => tar(file(".wh.", "")), /hides nothing/],
  ["a whiteout of .", () => tar(file(".wh..", "")), /hides nothing/],
  ["a whiteout of ..", () => tar(file("a/.wh...", "")), /hides nothing/],
  ["a root that is a link", () => tar(symlink(".", "/tmp")), /root is not a folder/],
  ["a root that is a file", () => tar(file(".", "")), /root is not a folder/],
  ["a name with a zero byte", () => tar(named("a\0b"), file("innocent")), /zero byte/],
  ["a name of 300 bytes", () => tar(file("n".repeat(300))), /limit name_bytes/],
  ["a path of 5,000 bytes", () => tar(file("a/".repeat(2500))), /limit path_bytes/],
  ["a link of 5,000 bytes", () => tar(symlink("a", "b/".repeat(2500))), /limit path_bytes/],
  ["an extended header of 2 MiB", () => tar(pax("x", Buffer.alloc(2 * 1024 * 1024, "x"))), /limit pax_bytes/],
  ["a broken extended header", () => tar(pax("x", record("99 path=a\n")), file("a")), /extended header is damaged/],
  ["a sparse file by pax", () => tar(pax("x", record("22 GNU.sparse.major=1\n")), file("a")), /sparse file/],
  ["an old GNU sparse file", () => tar(typed("a", "S")), /type "S"/],
  ["an unknown type", () => tar(typed("a", "Z")), /type "Z"/],
  [
    "a size that is no number",
    () => tar(forged(file("a"), (bytes) => bytes.write("zzzzzzzzzzz", 124))),
    /size of an entry is not a number/,
  ],
  [
    "a negative size",
    () => tar(forged(file("a"), (bytes) => bytes.fill(0xff, 124, 136))),
    /size of an entry is negative/,
  ],
  ["a size beyond all numbers", () => tar(forged(file("a"), (bytes) => bytes.fill(0xbf, 124, 136))), /too large/],
  ["a file larger than a tree may be", () => tar(sized("a", "77777777777")), /limit tree_bytes|cut short/],
  [
    "an owner that cannot be",
    () => tar(forged(file("a"), (bytes) => Buffer.from("80000000ffffffff", "hex").copy(bytes, 108))),
    /invalid owner id/,
  ],
  ["a wrong sum", () => tar(file("a").fill("b", 0, 1)), /damaged/],
  ["a cut", () => file("a", "long enough to be cut").subarray(0, 520), /cut short/],
  ["a header without its entry", () => pax("x", record("11 mtime=1\n")), /cut short/],
  ["something after the end", () => Buffer.concat([Buffer.alloc(512), file("a")]), /follows the end/],
  ["no archive at all", () => Buffer.from("<html>".repeat(200)), /not a tar archive/],
  ["nothing", () => Buffer.alloc(0), /empty/],
  [
    "damaged gzip",
    () => Buffer.concat([gzipSync(tar(file("a"))).subarray(0, 40), Buffer.alloc(100)]),
    /gzip data are damaged/,
  ],
  ["cut gzip", () => gzipSync(tar(file("a", "x".repeat(10_000)))).subarray(0, 60), /gzip data are damaged/],
  ["cut zstd", () => zstdCompressSync(tar(file("a", "xyz".repeat(10_000)))).subarray(0, 40), /zstd data are damaged/],
  ["xz", () => Buffer.from("fd377a585a0000000000000000", "hex"), /compressed with xz/],
];

/** Everything outside the layer's folder that a layer could try to change. */
function census(base: string): string[] {
  const out = join(base, "out");
  return [out, ...readdirSync(out).map((name) => join(out, name)), "/etc/passwd"].map((path) => {
    const { ino, mtimeMs, mode, size, uid, nlink } = lstatSync(path);
    return [path, ino, mtimeMs, mode, size, uid, nlink].join(" ");
  });
}

function withOutside(base: string): string {
  const out = join(base, "out");
  mkdirSync(out);
  writeFileSync(join(out, "file"), "the host's");
  return out;
}

suite("layer unpacking", { skip: NOT_ROOT }, () => {
  for (const [what, archive, why] of REFUSED) {
    test(`layer is refused: ${what}`, async (t) => {
      const base = tempStore(t);
      withOutside(base);
      const before = census(base);
      await assert.rejects(unpackTar(base, "layer", archive(join(base, "out"))), { name: "LayerFault", message: why });
      assert.deepEqual(census(base), before);
      assert.ok(!readdirSync(base).includes("escaped"));
    });
  }

  test("symbolic links are resolved inside the layer, as if it were the root", async (t) => {
    const base = tempStore(t);
    const out = withOutside(base);
    const before = census(base);
    const { root } = await unpackTar(
      base,
      "layer",
      tar(
        symlink("absolute", out),
        file("absolute/a", "1"),
        symlink("up", "../../../../../.."),
        file("up/b", "2"),
        dir("etc"),
        symlink("config", "/etc"),
        file("config/passwd", "mine"),
        dir("usr"),
        dir("usr/lib"),
        symlink("lib", "usr/lib"),
        file("lib/c", "3"),
        symlink("chain", "lib/../lib"),
        file("chain/d", "4"),
        file("/rooted", "5"),
      ),
    );
    const read = (path: string): string => readFileSync(join(root, path), "utf8");
    assert.equal(read(`${out}/a`), "1");
    assert.equal(read("b"), "2");
    assert.equal(read("etc/passwd"), "mine");
    assert.deepEqual([read("usr/lib/c"), read("usr/lib/d"), read("rooted")], ["3", "4", "5"]);
    assert.deepEqual(census(base), before);
  });

  test("a folder replaced by a link out of the layer, and late mtimes, change nothing outside", async (t) => {
    const base = tempStore(t);
    const out = withOutside(base);
    mkdirSync(join(out, "inner"));
    const before = census(base);
    const { root } = await unpackTar(
      base,
      "layer",
      tar(dir("a"), dir("a/inner"), file("a/inner/x"), symlink("a", out), file("a", "a file in the end")),
    );
    assert.equal(readFileSync(join(root, "a"), "utf8"), "a file in the end");
    const again = await unpackTar(base, "again", tar(dir("a"), dir("a/inner"), symlink("a", out)));
    assert.equal(readlinkSync(join(again.root, "a")), out);
    assert.deepEqual(census(base), before);
  });

  test("owners, modes, times, links, setuid and unusual names are preserved", async (t) => {
    const base = tempStore(t);
    const long = `${"d".repeat(120)}/${"f".repeat(200)}`;
    const { root, entries } = await unpackTar(
      base,
      "layer",
      tar(
        entry({ path: "su", body: "#!", mode: 0o4755, uid: 12, gid: 34, mtime: 1_000_000 }),
        entry({ path: "big", uid: 3_000_000, gid: 4_000_000 }),
        entry({ path: "tmp/", type: "directory", mode: 0o1777, mtime: 2_000_000 }),
        file("tmp/inside"),
        hardlink("su2", "su"),
        symlink("dangling", "/nowhere/at/all"),
        file("caf\xe9", "latin1"),
        file(long, "long"),
        entry({ path: "./", type: "directory", mode: 0o711, uid: 7 }),
      ),
    );
    const su = statSync(join(root, "su"));
    assert.deepEqual([su.mode & 0o7777, su.uid, su.gid, su.mtimeMs, su.nlink], [0o4755, 12, 34, 1e9, 2]);
    assert.deepEqual([statSync(join(root, "big")).uid, statSync(join(root, "big")).gid], [3_000_000, 4_000_000]);
    const tmp = statSync(join(root, "tmp"));
    assert.deepEqual([tmp.mode & 0o7777, tmp.mtimeMs], [0o1777, 2e9]);
    assert.equal(readFileSync(join(root, long), "utf8"), "long");
    assert.ok(readdirSync(root, { encoding: "latin1" as "utf8" }).includes("caf\xe9"));
    assert.deepEqual([statSync(root).mode & 0o7777, statSync(root).uid], [0o711, 7]);
    assert.equal(entries, 9);
  });

  test("whiteouts become devices 0/0, opaque folders get the xattr, and a new folder hides the old one", async (t) => {
    const base = tempStore(t);
    const {
      root,
      opaque_root,
      opaque: listed,
    } = await unpackTar(
      base,
      "layer",
      tar(
        dir("a"),
        file("a/.wh.gone", ""),
        file("b/.wh..wh..opq", ""),
        file("b/new"),
        file(".wh.c", ""),
        dir("c"),
        file("c/new"),
        dir("d"),
        file(".wh.d", ""),
        file("kept"),
        file(".wh.kept", ""),
        file(".wh..wh.plnk", ""),
        file(".wh.e", ""),
        file("e/f/g"),
      ),
    );
    const gone = lstatSync(join(root, "a/gone"));
    assert.deepEqual([gone.isCharacterDevice(), gone.rdev], [true, 0]);
    for (const folder of ["b", "c", "d", "e"]) assert.equal(opaque(join(root, folder)), "y", folder);
    assert.equal(opaque(join(root, "a")), "");
    assert.deepEqual(readFileSync(join(root, "kept"), "utf8"), "x");
    assert.ok(!readdirSync(root).some((name) => name.startsWith(".wh.")));
    assert.equal(opaque_root, false);
    assert.deepEqual(listed?.toSorted(), ["/b", "/c", "/d", "/e"]);
    assert.equal((await unpackTar(base, "whole", tar(file(".wh..wh..opq", ""), file("x")))).opaque_root, true);
  });

  test("devices and extended attributes are left out, pipes are created", async (t) => {
    const base = tempStore(t);
    const attribute = " SCHILY.xattr.trusted.overlay.redirect=/etc\n";
    const { root, left_out } = await unpackTar(
      base,
      "layer",
      tar(
        typed("null", "3"),
        typed("disk", "4"),
        typed("pipe", "6"),
        pax("x", record(`${attribute.length + 2}${attribute}`)),
        dir("sly"),
      ),
    );
    assert.deepEqual([readdirSync(root).sort(), left_out], [["pipe", "sly"], 2]);
    assert.ok(lstatSync(join(root, "pipe")).isFIFO());
    const { stdout } = spawnSync("getfattr", ["-d", "-m", "-", join(root, "sly")], { encoding: "utf8" });
    assert.equal(stdout ?? "", "");
  });

  test("of duplicate entries the last one wins, whatever its type", async (t) => {
    const base = tempStore(t);
    const { root } = await unpackTar(
      base,
      "layer",
      tar(
        file("a", "1"),
        file("a", "2"),
        dir("b"),
        file("b/x"),
        file("b", "3"),
        file("c"),
        dir("c"),
        file("c/y", "4"),
        hardlink("a", "a"),
      ),
    );
    const read = (path: string): string => readFileSync(join(root, path), "utf8");
    assert.deepEqual([read("a"), read("b"), read("c/y")], ["2", "3", "4"]);
  });

  test("archive bombs stop at a named limit", async (t) => {
    const base = tempStore(t);
    const many = tar(...Array.from({ length: 30 }, (_, i) => file(`f${i}`, "")));
    await assert.rejects(unpackTar(base, "many", many, { tree_entries: 20 }), /limit tree_entries/);
    const zeroes = tar(file("zeroes", "\0".repeat(4_000_000)));
    await assert.rejects(unpackTar(base, "large", gzipSync(zeroes), { tree_bytes: 1_000_000 }), /limit tree_bytes/);
    await assert.rejects(
      unpackTar(base, "ratio", gzipSync(zeroes), { ratio: 100, ratio_from_bytes: 1_000_000 }),
      /limit ratio/,
    );
    await assert.rejects(unpackTar(base, "full", zeroes, { disk_kept_bytes: 2 ** 60 }), { code: "ENOSPC" });
    const unread = Buffer.concat([Buffer.from("fd377a585a00", "hex"), Buffer.alloc(2_000_000)]);
    await assert.rejects(unpackTar(base, "xz", unread), /compressed with xz/);
    await until("no archive that was refused is left open", () => openBelow(base).length === 0);
  });

  test("gzip, zstd and uncompressed archives give the same layer", async (t) => {
    const base = tempStore(t);
    const plain = tar(file("a", "x".repeat(100_000)));
    const ways = {
      plain,
      gzip: gzipSync(plain),
      zstd: zstdCompressSync(plain),
      twice: Buffer.concat([gzipSync(plain.subarray(0, 600)), gzipSync(plain.subarray(600))]),
    };
    const ids = await Promise.all(
      Object.entries(ways).map(async ([name, bytes]) => (await unpackTar(base, name, bytes)).diff_id),
    );
    assert.equal(new Set(ids).size, 1);
  });
});

function opaque(path: string): string {
  const args = ["--only-values", "-n", "trusted.overlay.opaque", path];
  return spawnSync("getfattr", args, { encoding: "utf8" }).stdout ?? "";
}
