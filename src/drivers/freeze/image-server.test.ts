import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { tempDir } from "../../../test/support.ts";
import { ImageServer } from "./image-server.ts";
import { FIRST_PIECE_BYTES as MIB, SEALED_FILE, sealMemory } from "./sealed-memory.ts";

const run = promisify(execFile);
const key = randomBytes(32);
const skip = process.getuid?.() !== 0 || !existsSync("/dev/fuse") ? "needs root and FUSE" : false;

async function aSnapshot() {
  const dir = tempDir("hangar-images");
  const files: Record<string, Buffer> = {
    "core-1.img": randomBytes(700),
    "empty.img": Buffer.alloc(0),
    "pages-1.img": randomBytes(5 * MIB + 4096),
    "pages-2.img": randomBytes(3 * MIB),
    "pstree.img": randomBytes(26),
  };
  for (const folder of ["plain", "images"]) mkdirSync(join(dir, folder));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(dir, "plain", name), bytes);
  const sealed = await sealMemory(join(dir, "plain"), join(dir, "sealed"), key);
  return { files, task: { snapshot: join(dir, "sealed"), images: join(dir, "images"), key, sealed } };
}

const sha = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

suite("image server", { skip }, () => {
  test("shows every file of a sealed snapshot decrypted, at any offset, until it is closed", async () => {
    const { files, task } = await aSnapshot();
    const server = new ImageServer(task);
    const at = (name: string): string => join(task.images, name);
    // Programs of Debian, several at once.
    const { stdout } = await run("sha256sum", Object.keys(files).map(at));
    const sums = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]);
    assert.deepEqual(sums, Object.values(files).map(sha));
    await Promise.all(
      Object.keys(files).map(
        async (name) => void (await run("cmp", [at(name), join(task.snapshot, "../plain", name)])),
      ),
    );
    const [offset, length] = [MIB - 3, 2 * MIB + 7];
    const part = await run(
      "dd",
      [
        `if=${at("pages-1.img")}`,
        "iflag=skip_bytes,count_bytes,fullblock",
        `skip=${offset}`,
        `count=${length}`,
        "bs=1M",
        "status=none",
      ],
      { encoding: "buffer", maxBuffer: 8 * MIB },
    );
    assert.ok(part.stdout.equals(files["pages-1.img"]?.subarray(offset, offset + length) ?? Buffer.alloc(0)));
    // As CRIU reads memory: whatever the kernel asks for at once, in reads that begin within pieces.
    for (const bs of [4096, 12_288, 5 * MIB]) {
      const direct = [`if=${at("pages-1.img")}`, "iflag=direct", `bs=${bs}`, "status=none"];
      const { stdout } = await run("dd", direct, { encoding: "buffer", maxBuffer: 8 * MIB });
      assert.ok(stdout.equals(files["pages-1.img"] ?? Buffer.alloc(0)), `reads of ${bs} bytes`);
    }
    await assert.rejects(run("cat", [at("parent")]), /No such file/);
    await assert.rejects(run("sh", ["-c", `echo x > ${at("core-1.img")}`]), /Read-only/);
    assert.equal(await server.fault(), undefined);
    assert.equal(existsSync(at("core-1.img")), false);
  });

  test("gives an error instead of bytes that were changed, and says so", async () => {
    const { task } = await aSnapshot();
    const file = join(task.snapshot, SEALED_FILE);
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(2 * MIB) ^ 1, 2 * MIB);
    writeFileSync(file, bytes);
    const server = new ImageServer(task);
    await assert.rejects(run("cat", [join(task.images, "pages-1.img")], { maxBuffer: 8 * MIB }), /Input\/output error/);
    assert.match((await server.fault()) ?? "", /changed, or sealed with another key/);
  });

  test("gives errors when its threads fail, and says why", async () => {
    const { task } = await aSnapshot();
    const server = new ImageServer(task);
    // They open it when they start.
    rmSync(join(task.snapshot, SEALED_FILE));
    await assert.rejects(run("cat", [join(task.images, "core-1.img")]), /core-1.img/);
    assert.match((await server.fault()) ?? "", /ENOENT/);
    assert.equal(existsSync(join(task.images, "core-1.img")), false);
  });

  test("does not open a snapshot of another length", async () => {
    const { task } = await aSnapshot();
    const sealed = { ...task.sealed, files: { ...task.sealed.files, "pstree.img": 25 } };
    assert.throws(() => new ImageServer({ ...task, sealed }), /another length/);
  });
});
