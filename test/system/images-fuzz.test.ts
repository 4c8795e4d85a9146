/** Thousands of layers made by chance from everything that has led out of one before (C3): nothing outside changes. */
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { dir, entry, file, forged, hardlink, NOT_ROOT, symlink, tar } from "#drivers/images/fixtures.ts";
import { IMAGE_LIMITS } from "#drivers/images/limits.ts";
import { LayerFault } from "#drivers/images/refusal.ts";
import { TarReader } from "#drivers/images/tar.ts";
import { Tree } from "#drivers/images/tree.ts";
import { random, runs, seed, tempDir } from "../support.ts";

/** Names that meet one another often, so that links, folders and files get in each other's way. */
const NAMES = [
  "a",
  "b",
  "c",
  "..",
  ".",
  "",
  "a/b",
  "b/c",
  "a/../b",
  "../out",
  "/a",
  "//b",
  ".wh.a",
  ".wh..wh..opq",
  ".wh..",
  "c/.wh.b",
];

test("no generated layer changes anything outside its folder (C3)", { skip: NOT_ROOT }, (t) => {
  const next = random(seed(t));
  const base = tempDir();
  const out = join(base, "out");
  mkdirSync(join(out, "inner"), { recursive: true });
  for (const name of ["a", "b", "inner/c"]) writeFileSync(join(out, name), "the host's");
  const before = census(base, out);
  const seen = { unpacked: 0, refused: 0 };
  const total = runs(2000);
  for (let i = 0; i < total; i++) {
    const root = join(base, "layer");
    mkdirSync(root);
    const archive = generated(next, out);
    seen[unpack(root, archive, next)]++;
    rmSync(root, { recursive: true, force: true });
    // Every time would be better and slow; the seed finds the one it was.
    if (i % 50 === 49) assert.deepEqual(census(base, out), before, `after ${i + 1} layers`);
  }
  assert.deepEqual(census(base, out), before);
  t.diagnostic(`${total} layers: ${seen.unpacked} unpacked, ${seen.refused} refused`);
  assert.ok(seen.unpacked > total / 20 && seen.refused > total / 20, "both happen");
});

/** All that must stay as it is. */
function census(base: string, out: string): string[] {
  const paths = [out, ...(readdirSync(out, { recursive: true }) as string[]).map((name) => join(out, name))];
  const facts = [...paths, "/etc", "/etc/passwd", "/tmp/.."].map((path) => {
    const { ino, mtimeMs, ctimeMs, mode, size, uid, gid, nlink } = lstatSync(path);
    return [path, ino, mtimeMs, ctimeMs, mode, size, uid, gid, nlink].join(" ");
  });
  return [
    ...facts,
    readdirSync(base)
      .filter((name) => name !== "layer")
      .join(" "),
  ];
}

function unpack(root: string, archive: Buffer, next: () => number): "unpacked" | "refused" {
  const tree = new Tree(root, IMAGE_LIMITS);
  const reader = new TarReader(tree, IMAGE_LIMITS);
  try {
    // In pieces of any size, as they come out of a decoder.
    for (let at = 0; at < archive.length; ) {
      const end = at + 1 + Math.floor(next() * 3000);
      reader.write(archive.subarray(at, end));
      at = end;
    }
    reader.end();
    tree.end();
    return "unpacked";
  } catch (thrown) {
    assert.ok(thrown instanceof LayerFault, `a fault in words, not ${String((thrown as Error).stack)}`);
    return "refused";
  } finally {
    tree.abandon();
  }
}

function generated(next: () => number, out: string): Buffer {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  // Mostly harmless names, or nothing would ever be unpacked.
  const name = (): string =>
    next() < 0.85 ? pick(["a", "b", "c", "a/b", "b/c", "a/b/c", "/a", ".wh.a", "b/.wh.c"]) : pick(NAMES);
  const target = (): string =>
    pick([out, "/", "..", "../..", "/etc", "a", "b", "../b", "c/..", `${out}/inner`, "/proc/self/root"]);
  const makers: (() => Buffer)[] = [
    () => file(name(), "x".repeat(Math.floor(next() * 2000))),
    () => file(name(), "y"),
    () => dir(name()),
    () => symlink(name(), target()),
    () => symlink(name(), target()),
    () => hardlink(name(), pick([name(), target(), `${out}/a`, "/etc/passwd"])),
    () => entry({ path: name(), mode: 0o6777, uid: 1, gid: 2 }),
    () => forged(file(name(), ""), (bytes) => bytes.write(pick(["3", "4", "6", "7", "Z"]), 156)),
  ];
  const parts = Array.from({ length: 1 + Math.floor(next() * 12) }, () => pick(makers)());
  const archive = tar(...parts);
  // Now and then a byte is not what it was.
  if (next() < 0.1) archive[Math.floor(next() * archive.length)] = Math.floor(next() * 256);
  return archive;
}
