/**
 * Unseals a snapshot for CRIU. Small ones are plain files in memory until the machine runs, which is fastest. Large
 * ones are decrypted as CRIU reads them: that needs neither the memory nor the time for a second copy.
 */
import { existsSync } from "node:fs";
import { chmod, chown, open } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { READ_BYTES } from "./fuse.ts";
import { ImageServer, ImageServerError, type SealedSnapshot, type ServedImages } from "./image-server.ts";

import { SEALED_FILE, type SealedMemory } from "./sealed-memory.ts";
import { SealedReader, sealedFile } from "./sealed-reader.ts";

/** A file system in a program costs some milliseconds more than it saves for less. */
const SMALL_BYTES = 64 * 1024 * 1024;

/** Bytes of the plain files that `unsealed` makes. */
export function plainBytes({ files }: SealedMemory): number {
  const bytes = Object.values(files).reduce((sum, length) => sum + length, 0);
  return bytes > SMALL_BYTES && existsSync("/dev/fuse") ? 0 : bytes;
}

/** Makes the images readable in the empty folder `images`, also for `gid`, the machine's root. */
export async function unsealed(task: SealedSnapshot, gid: number): Promise<ServedImages> {
  if (plainBytes(task.sealed) === 0) return new ImageServer(task);
  try {
    await writeFiles(task, gid);
  } catch (cause) {
    throw new ImageServerError(messageOf(cause), { cause });
  }
  return { fault: async () => undefined, async [Symbol.asyncDispose]() {} };
}

/**
 * CRIU reads its files as root without CAP_DAC_OVERRIDE, then as the machine's root, so permission bits must allow
 * both. No other user may read a machine's memory.
 */
export async function writeFiles({ snapshot, images, key, sealed }: SealedSnapshot, gid: number): Promise<void> {
  await using source = await open(join(snapshot, SEALED_FILE), "r");
  const reader = new SealedReader(sealedFile(source.fd), key, sealed);
  for (const [at, [name, length]] of Object.entries(sealed.files).entries()) {
    await using handle = await open(join(images, name), "wx", 0o600);
    for (let offset = 0; offset < length; offset += READ_BYTES)
      await handle.writeFile(reader.read(at, offset, READ_BYTES));
    await handle.chown(0, gid);
    await handle.chmod(0o640);
  }
  await chown(images, 0, gid);
  await chmod(images, 0o750);
}
