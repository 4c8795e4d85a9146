/** Reads a pushed body within limits, and unpacks it. */
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip, inflate, zstdDecompress } from "node:zlib";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { piecesOf } from "#http/upload.ts";
import { BadSnappy, SnappyDecoder } from "../tsdb/ingest/snappy-decode.ts";
import { PUSH_LIMITS } from "./limits.ts";

const tooLarge = (): never =>
  fail(
    "payload_too_large",
    `a pushed body has at most ${PUSH_LIMITS.push_bytes} bytes (limit push_bytes); send smaller ones`,
  );

export async function readBody(request: IncomingMessage, clock: Clock, allowed: AbortSignal): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > PUSH_LIMITS.push_bytes) tooLarge();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(request, clock, allowed)) {
    bytes += piece.length;
    if (bytes > PUSH_LIMITS.push_bytes) tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

type Unpack = (body: Buffer) => Promise<Uint8Array> | Uint8Array;

const most = { maxOutputLength: PUSH_LIMITS.push_bytes };
const UNPACK: Record<string, Unpack> = {
  identity: (body) => body,
  gzip: (body) => promisify(gunzip)(body, most),
  deflate: (body) => promisify(inflate)(body, most),
  zstd: (body) => promisify(zstdDecompress)(body, most),
  snappy: (body) => {
    const packed = new SnappyDecoder(body);
    return packed.size > PUSH_LIMITS.push_bytes ? tooLarge() : packed.unpack();
  },
};

/** The body without its Content-Encoding; a bad one is the sender's mistake. */
export async function unpacked(body: Buffer, encoding: string): Promise<Uint8Array> {
  const name = encoding === "" ? "identity" : encoding.toLowerCase();
  const unpack = Object.hasOwn(UNPACK, name) ? UNPACK[name] : undefined;
  if (!unpack)
    fail(
      "unsupported_media_type",
      `Content-Encoding ${encoding.slice(0, 40)} is not one of ${Object.keys(UNPACK).join(", ")}`,
    );
  try {
    return await unpack(body);
  } catch (thrown) {
    if (thrown instanceof BadSnappy) fail("invalid_request", `the body is not snappy: ${thrown.message}`);
    const { code } = thrown as { code?: string };
    if (code === "ERR_BUFFER_TOO_LARGE") tooLarge();
    if (code?.startsWith("Z_") || code?.startsWith("ZSTD_"))
      fail("invalid_request", `the body is not ${name}: ${code}`);
    throw thrown;
  }
}
