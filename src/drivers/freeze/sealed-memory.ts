/**
 * The memory of a suspended machine as one encrypted file. CRIU writes plain files, so those are in memory and exist
 * only while it runs; the file on disk is sealed. CRIU reads it decrypted, through FUSE (`image-server.ts`).
 *
 * The files' bytes one after the other, in pieces of 1 MiB; each piece is AES-256-GCM with its number as the nonce.
 * Every snapshot has a key of its own, from the platform's key and a random salt, so no nonce is used twice under one
 * key. Which files there are, and how long, is in the machine's record: a file that was cut, extended or exchanged
 * does not open.
 */
import { createCipheriv, hkdfSync, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

export interface SealedMemory {
  /** Derives the snapshot's key from the platform's. */
  salt: string;
  /** Lengths in bytes, in the order of concatenation. */
  files: Record<string, number>;
}

export const SEALED_FILE = "memory.sealed";
export const PIECE = 1024 * 1024;
export const TAG_BYTES = 16;
const NONCE_BYTES = 12;
const SALT_BYTES = 16;
/** Size of one cipher operation: small enough to reuse its memory in the CPU cache. */
const SLICE = 64 * 1024;
/** Concurrent pieces: one is read or written while another is encrypted. */
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
    await eachPiece(parts.bytes, async (piece, { plain, body, at }) => {
      await parts.read(at, plain);
      const cipher = createCipheriv("aes-256-gcm", snapshot_key, nonceOf(piece));
      through(cipher, plain, body);
      cipher.final();
      cipher.getAuthTag().copy(body, plain.length);
      await writeWhole(sealed, body, at + piece * TAG_BYTES);
    });
    await sealed.sync();
  }
  await using folder = await open(to, "r");
  await folder.sync();
  return { salt, files: parts.lengths };
}

export const pieces = (bytes: number): number => Math.ceil(bytes / PIECE);

interface Piece {
  plain: Buffer;
  /** Ciphertext, followed by the tag. */
  body: Buffer;
  /** Offset in the concatenated files. */
  at: number;
}

async function eachPiece(bytes: number, work: (piece: number, of: Piece) => Promise<void>): Promise<void> {
  const count = pieces(bytes);
  let next = 0;
  const lane = async (): Promise<void> => {
    const room = Math.min(PIECE, bytes);
    const [plain, body] = [Buffer.allocUnsafe(room), Buffer.allocUnsafe(room + TAG_BYTES)];
    for (let piece = next++; piece < count; piece = next++) {
      const at = piece * PIECE;
      const length = Math.min(PIECE, bytes - at);
      await work(piece, { plain: plain.subarray(0, length), body: body.subarray(0, length + TAG_BYTES), at });
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, count) }, lane));
}

function through(cipher: { update(bytes: Buffer): Buffer }, from: Buffer, to: Buffer): void {
  for (let at = 0; at < from.length; at += SLICE) cipher.update(from.subarray(at, at + SLICE)).copy(to, at);
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
