import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import {
  FIRST_PIECE_BYTES,
  keyOf,
  nonceOf,
  PIECE,
  SEALED_FILE,
  type SealedMemory,
  sealMemory,
} from "./sealed-memory.ts";
import { SealedReader } from "./sealed-reader.ts";

const SECRET = "correct horse battery staple";
const key = randomBytes(32);

/** Files with ends on, before and after the borders of pieces, an empty one among them. */
async function aSnapshot(): Promise<{ dir: string; sealed: SealedMemory; files: Record<string, Buffer> }> {
  const dir = tempDir("hangar-sealed");
  const files: Record<string, Buffer> = {
    "a.img": Buffer.from(SECRET.repeat(1000)),
    "b.img": Buffer.alloc(0),
    "pages-1.img": randomBytes(PIECE * 2 - SECRET.length * 1000),
    "pages-2.img": randomBytes(11 * PIECE + 17),
  };
  mkdirSync(join(dir, "plain"));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(dir, "plain", name), bytes);
  const sealed = await sealMemory(join(dir, "plain"), join(dir, "sealed"), key);
  return { dir, sealed, files };
}

function opened(dir: string, sealed: SealedMemory, under: Uint8Array = key): Record<string, Buffer> {
  const file = readFileSync(join(dir, "sealed", SEALED_FILE));
  const read = (at: number, length: number): Buffer => file.subarray(at, at + length);
  const reader = new SealedReader({ size: file.length, read }, under, sealed);
  return Object.fromEntries(
    Object.entries(sealed.files).map(([name, length], at) => [name, Buffer.from(reader.read(at, 0, length))]),
  );
}

suite("sealed memory", () => {
  test("sealed memory opens to the same files, and its file shows nothing of them", async () => {
    const { dir, sealed, files } = await aSnapshot();
    assert.deepEqual(readdirSync(join(dir, "sealed")), [SEALED_FILE]);
    const file = readFileSync(join(dir, "sealed", SEALED_FILE));
    assert(!file.includes(SECRET));
    const again = opened(dir, sealed);
    assert.deepEqual(Object.keys(again), Object.keys(files));
    for (const [name, bytes] of Object.entries(files)) assert(again[name]?.equals(bytes), name);
  });

  test("two sealed snapshots of the same memory differ", async () => {
    const { dir } = await aSnapshot();
    await sealMemory(join(dir, "plain"), join(dir, "second"), key);
    const [one, two] = ["sealed", "second"].map((name) => readFileSync(join(dir, name, SEALED_FILE)).subarray(0, 64));
    assert.notDeepEqual(one, two);
  });

  const damages: Record<string, (file: string, sealed: SealedMemory) => void> = {
    "a flipped bit": (file) => {
      const bytes = readFileSync(file);
      bytes.writeUInt8(bytes.readUInt8(PIECE + 5) ^ 1, PIECE + 5);
      writeFileSync(file, bytes);
    },
    "two pieces exchanged": (file) => {
      const bytes = readFileSync(file);
      const step = PIECE + 16;
      const parts = [bytes.subarray(step, 2 * step), bytes.subarray(0, step), bytes.subarray(2 * step)];
      writeFileSync(file, Buffer.concat(parts));
    },
    "a cut end": (file) => truncateSync(file, PIECE),
    "another list of files": (_, sealed) => {
      sealed.files["a.img"] = 1;
    },
    "another salt": (_, sealed) => {
      sealed.salt = randomBytes(16).toString("base64url");
    },
  };
  for (const [name, damage] of Object.entries(damages))
    test(`sealed memory does not open after ${name}`, async () => {
      const { dir, sealed } = await aSnapshot();
      damage(join(dir, "sealed", SEALED_FILE), sealed);
      assert.throws(() => opened(dir, sealed), /sealed memory/);
    });

  test("a snapshot of the first format, with larger pieces, still opens", () => {
    const dir = tempDir("hangar-sealed");
    const plain = randomBytes(2 * FIRST_PIECE_BYTES + 5);
    const salt = randomBytes(16).toString("base64url");
    const bodies = [0, 1, 2].map((piece) => {
      const cipher = createCipheriv("aes-256-gcm", keyOf(key, salt), nonceOf(piece));
      const body = cipher.update(plain.subarray(piece * FIRST_PIECE_BYTES, (piece + 1) * FIRST_PIECE_BYTES));
      return Buffer.concat([body, cipher.final(), cipher.getAuthTag()]);
    });
    mkdirSync(join(dir, "sealed"));
    writeFileSync(join(dir, "sealed", SEALED_FILE), Buffer.concat(bodies));
    const files = { "a.img": 9, "pages-1.img": plain.length - 9 };
    const again = opened(dir, { salt, files });
    assert.ok(again["pages-1.img"]?.equals(plain.subarray(9)));
  });

  test("sealed memory does not open with another platform's key", async () => {
    const { dir, sealed } = await aSnapshot();
    assert.throws(() => opened(dir, sealed, randomBytes(32)), /another key/);
  });
});
