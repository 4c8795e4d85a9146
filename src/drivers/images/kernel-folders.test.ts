/** Entries of images below /dev, /proc and /sys are left out, whatever path leads to them. */
import assert from "node:assert/strict";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import {
  dir,
  entry,
  file,
  forged,
  hardlink,
  NEVER,
  NOT_ROOT,
  openStore,
  pieces,
  symlink,
  tar,
  tempStore,
  unpackTar,
} from "./fixtures.ts";

const device = (path: string): Buffer => forged(file(path, ""), (bytes) => bytes.write("3", 156));

/** The /dev of a root file system that debootstrap made. */
const DEBOOTSTRAP = [
  dir("./dev"),
  ...["null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"].map((name) => device(`./dev/${name}`)),
  dir("./dev/pts"),
  dir("./dev/shm"),
  symlink("./dev/fd", "/proc/self/fd"),
  ...["stdin", "stdout", "stderr"].map((name, fd) => symlink(`./dev/${name}`, `/proc/self/fd/${fd}`)),
];

suite("/dev, /proc and /sys of a layer", { skip: NOT_ROOT }, () => {
  test("the /dev of debootstrap becomes an empty folder", async (t) => {
    const { root, left_out, entries } = await unpackTar(
      tempStore(t),
      "layer",
      tar(dir("."), ...DEBOOTSTRAP, dir("./proc"), file("./proc/1/status"), dir("./sys"), file("./sys/x"), file("./a")),
    );
    assert.deepEqual(readdirSync(root).toSorted(), ["a", "dev", "proc", "sys"]);
    for (const folder of ["dev", "proc", "sys"]) assert.deepEqual(readdirSync(join(root, folder)), [], folder);
    assert.deepEqual([left_out, entries], [16, 21]);
  });

  test("no whiteouts or opaque markers are made in kernel folders, nor for the folders themselves", async (t) => {
    const whiteouts = [".wh.dev", "proc/.wh.1", "sys/.wh..wh..opq", "dev/.wh..wh..opq", ".wh.gone"];
    const { root, opaque } = await unpackTar(tempStore(t), "layer", tar(...whiteouts.map((path) => file(path, ""))));
    assert.deepEqual([readdirSync(root), opaque], [["gone"], []]);
  });

  test("a link in place of a kernel folder is left out and not followed", async (t) => {
    const { root } = await unpackTar(
      tempStore(t),
      "layer",
      tar(
        dir("etc"),
        symlink("dev", "etc"),
        file("dev/passwd", "through the link"),
        file("proc", "a file"),
        device("sys"),
        dir("sys"),
      ),
    );
    assert.deepEqual(readdirSync(root).toSorted(), ["etc", "sys"]);
    assert.deepEqual(readdirSync(join(root, "etc")), []);
  });

  test("nothing is written into kernel folders through links; links that lead back out are followed", async (t) => {
    const { root } = await unpackTar(
      tempStore(t),
      "layer",
      tar(
        symlink("short", "/dev"),
        file("short/a"),
        dir("short/deep"),
        file("short/.wh.b", ""),
        symlink("long", "sys/fs/../fs/cgroup"),
        file("long/c"),
        symlink("out", "/proc/self/../../etc"),
        file("out/d", "kept"),
        file("devices/e"),
      ),
    );
    assert.deepEqual(readdirSync(root).toSorted(), ["devices", "etc", "long", "out", "short"]);
    assert.equal(readFileSync(join(root, "etc/d"), "utf8"), "kept");
  });

  test("a hard link to a device is left out; one to a file in a kernel folder is refused", async (t) => {
    const base = tempStore(t);
    const { root, left_out } = await unpackTar(
      base,
      "devices",
      tar(device("dev/null"), hardlink("null", "dev/null"), hardlink("void", "null"), file("kept")),
    );
    assert.deepEqual([readdirSync(root), left_out], [["kept"], 3]);
    const inward = await unpackTar(base, "inward", tar(file("a"), hardlink("dev/a", "a")));
    assert.deepEqual(readdirSync(inward.root), ["a"]);
    await assert.rejects(unpackTar(base, "files", tar(file("dev/notes", "text"), hardlink("notes", "dev/notes"))), {
      name: "LayerFault",
      message: /"notes" is a hard link to "dev\/notes", and what is below \/dev, \/proc and \/sys is left out/,
    });
  });

  test("a file that replaces a device is unpacked, also for hard links", async (t) => {
    const bytes = tar(device("x"), file("x", "text"), hardlink("y", "x"));
    const { root } = await unpackTar(tempStore(t), "layer", bytes);
    assert.equal(readFileSync(join(root, "y"), "utf8"), "text");
  });

  test("owner and mode of kernel folders are preserved", async (t) => {
    const bytes = tar(entry({ path: "dev/", type: "directory", mode: 0o711, uid: 3 }));
    const { mode, uid } = lstatSync(join((await unpackTar(tempStore(t), "layer", bytes)).root, "dev"));
    assert.deepEqual([mode & 0o7777, uid], [0o711, 3]);
  });

  test("kernel folders in layers from an earlier version are emptied at the next start", async (t) => {
    const images = await openStore(t);
    await images.import("old:1", pieces(tar(dir("dev"), file("etc/x"))), PLATFORM, NEVER);
    await images.close();
    const layers = join(images.dir, "layers");
    const [record = ""] = readdirSync(layers).filter((name) => name.endsWith(".json"));
    const { bare_kernel_folders, ...old } = JSON.parse(readFileSync(join(layers, record), "utf8")) as Record<
      string,
      unknown
    >;
    assert.equal(bare_kernel_folders, true);
    writeFileSync(join(layers, record), JSON.stringify(old));
    const folder = join(layers, record.replace(".json", ""));
    symlinkSync("/proc/self/fd", join(folder, "dev/fd"));
    mkdirSync(join(folder, "dev/pts"));
    symlinkSync("etc", join(folder, "proc"));
    await openStore(t, { dir: join(images.dir, "..") });
    assert.deepEqual(readdirSync(folder).toSorted(), ["dev", "etc"]);
    assert.deepEqual(readdirSync(join(folder, "dev")), []);
    assert.ok(existsSync(join(folder, "etc/x")));
    assert.equal(JSON.parse(readFileSync(join(layers, record), "utf8")).bare_kernel_folders, true);
  });
});
