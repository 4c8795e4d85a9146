import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm, statfs } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { pipeline as finished } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { ApiError, fail } from "#core/errors.ts";
import type { PlainTar } from "./archive.ts";
import { type Layout, temporary } from "./files.ts";
import type { ImageLimits } from "./limits.ts";
import { refuseImage } from "./refusal.ts";

interface ReceiveParts {
  layout: Layout;
  limits: ImageLimits;
  /** Called before writing; fails when the quota is exceeded. */
  grow(bytes: number): void;
}

/** Interval between checks of free disk space. */
const LOOK_BYTES = 64 * 2 ** 20;

/**
 * Receives a tar, compressed or not, and stores it uncompressed. The caller removes the file. The decompressed size is
 * limited while writing, because it is not known before.
 */
export async function receiveTar(
  upload: AsyncIterable<Uint8Array>,
  { layout, limits, grow }: ReceiveParts,
  signal: AbortSignal,
): Promise<PlainTar> {
  const file = temporary(layout, "upload");
  const hash = createHash("sha256");
  let [came, bytes, look_at] = [0, 0, 0];
  async function* sent(): AsyncIterable<Uint8Array> {
    for await (const chunk of upload) {
      came += chunk.length;
      yield chunk;
    }
  }
  async function* counted(source: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > limits.upload_bytes)
        fail("payload_too_large", `the image has more than ${limits.upload_bytes} bytes (limit upload_bytes)`);
      if (bytes > limits.ratio_from_bytes && bytes > came * limits.ratio)
        refuseImage(`what was sent grows to more than ${limits.ratio} times its size (limit ratio)`);
      grow(chunk.length);
      if (bytes >= look_at) {
        look_at = bytes + LOOK_BYTES;
        await refuseFullDisk(layout, limits);
      }
      hash.update(chunk);
      yield chunk;
    }
  }
  try {
    await finished(await decoded(sent()), counted, createWriteStream(file, { mode: 0o600, flags: "wx" }), { signal });
  } catch (thrown) {
    await rm(file, { force: true });
    throw spoken(thrown, signal);
  }
  return { file, bytes, sha256: `sha256:${hash.digest("hex")}` };
}

async function refuseFullDisk({ ingest }: Layout, { disk_kept_bytes }: ImageLimits): Promise<void> {
  const { bavail, bsize } = await statfs(ingest);
  if (bavail * bsize < disk_kept_bytes)
    fail("storage_full", "the image does not fit on the disk (limit disk_kept_bytes)", {
      hint: "`hangar images gc --dry-run` says what can go",
    });
}

function spoken(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const code = String((thrown as { code?: string }).code);
  if (code === "ENOSPC") return new ApiError("storage_full", "the image does not fit on the disk");
  if (/^(Z_|ZSTD_|ERR_ZLIB|ERR_BUFFER)/.test(code))
    return new ApiError("image_refused", "what was sent is compressed, and damaged or cut short");
  return thrown;
}

/** The decompressed upload; the format is detected from its first bytes. */
async function decoded(upload: AsyncIterable<Uint8Array>): Promise<Readable> {
  const chunks = upload[Symbol.asyncIterator]();
  let first = Buffer.alloc(0);
  let over = false;
  while (first.length < 4 && !over) {
    const next = await chunks.next();
    over = next.done === true;
    if (!next.done) first = Buffer.concat([first, next.value]);
  }
  if (first.length === 0) refuseImage("nothing was sent; send a tar: a root file system, an OCI or a docker archive");
  async function* all(): AsyncIterable<Uint8Array> {
    yield first;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }
  const source = Readable.from(all(), { objectMode: false });
  const magic = first.toString("hex", 0, 4);
  const decoder = magic.startsWith("1f8b") ? createGunzip() : magic === "28b52ffd" ? createZstdDecompress() : undefined;
  return decoder ? pipeline(source, decoder, () => {}) : source;
}
