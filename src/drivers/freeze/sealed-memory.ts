/**
 * The memory of a suspended machine as one encrypted file. CRIU writes plain files, so those are in memory and exist
 * only while it runs; the file on disk is sealed. CRIU reads it decrypted, through FUSE (`image-server.ts`).
 *
 * The files' bytes one after the other, in pieces of 128 KiB; each piece is AES-256-GCM with its number as the nonce.
 * Every snapshot has a key of its own, from the platform's key and a random salt, so no nonce is used twice under one
 * key. Which files there are, and how long, is in the machine's record: a file that was cut, extended or exchanged
 * does not open.
 */
import { createCipheriv, hkdfSync, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { SLICE, TAG_BYTES } from "./opener.ts";

export interface SealedMemory {
  /** Derives the snapshot's key from the platform's. */
  salt: string;
  /** Absent in snapshots of the first format. */
  piece_bytes?: number;
  /** Lengths in bytes, in the order of concatenation. */
  files: Record<string, number>;
}

export const SEALED_FILE = "memory.sealed";
/** What is not wanted of the first and last piece of a read is decrypted in vain, so pieces are smaller than reads. */
export const PIECE = 128 * 1024;
export const FIRST_PIECE_BYTES = 1024 * 1024;
/** Pieces that are read and written together. */
const BATCH = 8;
const NONCE_BYTES = 12;
const SALT_BYTES = 16;
/** Concurrent batches: one is read or written while another is encrypted. */
const LANES = 3;

/** Encrypts all files of `from` into one file in `to`, durably. */
export async function sealMemory(from: string, to: string, key: Uint8Array): Promise<SealedMemory> {
  const salt = randomBytes(SALT_BYTES).toString("base64url");
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true, mode: 0o700 });
  const snapshot_key = keyOf(key, salt);
  await using parts = await Concatenated.open(from, (await readdir(from)).sort());
  {
    await using sealed = await open(join(to, SEALED_FILE), "wx", 0o600);
    await eachBatch(parts.bytes, async (first, plain, body) => {
      await parts.read(first * PIECE, plain);
      for (let at = 0, piece = first; at < plain.length; at += PIECE, piece++)
        sealPiece(snapshot_key, piece, plain.subarray(at, at + PIECE), body.subarray(at + (piece - first) * TAG_BYTES));
      await writeWhole(sealed, body, first * (PIECE + TAG_BYTES));
    });
    await sealed.sync();
  }
  await using folder = await open(to, "r");
  await folder.sync();
  return { salt, piece_bytes: PIECE, files: parts.lengths };
}

const pieces = (bytes: number): number => Math.ceil(bytes / PIECE);

/** Runs `work` with the number of each batch's first piece, room for the batch, and for its ciphertext and tags. */
async function eachBatch(
  bytes: number,
  work: (first: number, plain: Buffer, body: Buffer) => Promise<void>,
): Promise<void> {
  const count = pieces(bytes);
  let next = 0;
  const lane = async (): Promise<void> => {
    const room = Math.min(BATCH * PIECE, bytes);
    const [plain, body] = [Buffer.allocUnsafe(room), Buffer.allocUnsafe(room + BATCH * TAG_BYTES)];
    for (let first = next; first < count; first = next) {
      next += BATCH;
      const length = Math.min(BATCH * PIECE, bytes - first * PIECE);
      await work(first, plain.subarray(0, length), body.subarray(0, length + pieces(length) * TAG_BYTES));
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, count) }, lane));
}

/** Writes the ciphertext of a piece and its tag to the beginning of `to`. */
function sealPiece(key: Uint8Array, piece: number, plain: Buffer, to: Buffer): void {
  const cipher = createCipheriv("aes-256-gcm", key, nonceOf(piece));
  for (let at = 0; at < plain.length; at += SLICE) cipher.update(plain.subarray(at, at + SLICE)).copy(to, at);
  cipher.final();
  cipher.getAuthTag().copy(to, plain.length);
}

/** Length of the sealed file. */
export function sealedBytes({ files, piece_bytes }: SealedMemory): number {
  const bytes = Object.values(files).reduce((sum, length) => sum + length, 0);
  return bytes + Math.ceil(bytes / (piece_bytes ?? FIRST_PIECE_BYTES)) * TAG_BYTES;
}

export const keyOf = (platform_key: Uint8Array, salt: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", platform_key, Buffer.from(salt, "base64url"), "suspended memory", 32));

export function nonceOf(piece: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(piece, NONCE_BYTES - 4);
  return nonce;
}

/** Reads files as if they were one. */
class Concatenated implements AsyncDisposable {
  readonly #parts: readonly { handle: FileHandle; start: number; end: number }[];
  readonly lengths: Record<string, number>;
  readonly bytes: number;

  private constructor(handles: readonly FileHandle[], lengths: Record<string, number>) {
    let end = 0;
    const sizes = Object.values(lengths);
    this.#parts = handles.map((handle, index) => {
      const start = end;
      end += sizes[index] ?? 0;
      return { handle, start, end };
    });
    this.lengths = lengths;
    this.bytes = end;
  }

  static async open(dir: string, names: readonly string[]) {
    const handles: FileHandle[] = [];
    const lengths: Record<string, number> = {};
    for (const name of names) {
      const handle = await open(join(dir, name), "r");
      handles.push(handle);
      lengths[name] = (await handle.stat()).size;
    }
    return new Concatenated(handles, lengths);
  }

  async read(at: number, into: Buffer): Promise<void> {
    const until = at + into.length;
    for (const { handle, start, end } of this.#parts) {
      const [from, to] = [Math.max(at, start), Math.min(until, end)];
      if (from < to) await readWhole(handle, into.subarray(from - at, to - at), from - start);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#parts.map(({ handle }) => handle.close()));
  }
}

async function readWhole(handle: FileHandle, into: Buffer, at: number): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await handle.read(into, done, into.length - done, at + done);
    if (bytesRead === 0) throw new Error("a file of a suspended machine's memory is too short");
    done += bytesRead;
  }
}

async function writeWhole(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
}
