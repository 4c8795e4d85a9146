/** Uploads a large file to an S3-compatible server in parts, each of which is retried by itself. */
import { type FileHandle, open } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { assert } from "#core/assert.ts";
import { Slots } from "#core/slots.ts";
import { encode } from "#s3/signature.ts";
import { escaped, textOf } from "#s3/xml.ts";

const LIMITS = {
  /** Bytes per part; S3 takes no part below 5 MiB but the last. */
  part_bytes: 8 << 20,
  /** Parts of one object; larger objects get larger parts. */
  parts: 10_000,
  /** Parts in flight, which bounds the memory of one upload. */
  at_once: 4,
} as const;

/** Sends one request for the object, with retries, and reads the whole response. */
type Send = (request: {
  method: string;
  query: string;
  body?: Uint8Array;
}) => Promise<{ headers: IncomingHttpHeaders; bytes: Buffer }>;

export async function uploadParts(send: Send, path: string, size: number): Promise<void> {
  const started = await send({ method: "POST", query: "uploads=" });
  const id = textOf(started.bytes.toString("utf8"), "UploadId");
  assert(id !== undefined, "the server names the upload");
  const upload = `uploadId=${encode(id)}`;
  const file = await open(path);
  try {
    const tags = await sendParts(send, file, size, upload);
    const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escaped(tag)}</ETag></Part>`);
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
    const done = await send({ method: "POST", query: upload, body });
    // S3 sends the status 200 before it joins the parts, and an error afterwards.
    const text = done.bytes.toString("utf8");
    if (text.includes("<Error>")) throw new Error(textOf(text, "Message") ?? "the parts were not joined");
  } catch (error) {
    // Parts of an incomplete upload would be stored, and billed.
    await send({ method: "DELETE", query: upload }).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

/** The entity tag of each part, in order. */
async function sendParts(send: Send, file: FileHandle, size: number, upload: string): Promise<string[]> {
  const length = Math.max(LIMITS.part_bytes, Math.ceil(size / LIMITS.parts));
  const slots = new Slots(LIMITS.at_once);
  const failed = new AbortController();
  const sent = Array.from({ length: Math.ceil(size / length) }, (_, i) =>
    slots.use(async () => {
      failed.signal.throwIfAborted();
      const body = Buffer.allocUnsafe(Math.min(length, size - i * length));
      const { bytesRead } = await file.read(body, 0, body.length, i * length);
      assert(bytesRead === body.length, "the file keeps its size while it is uploaded");
      const { headers } = await send({ method: "PUT", query: `partNumber=${i + 1}&${upload}`, body });
      return headers.etag ?? "";
    }),
  );
  try {
    return await Promise.all(sent);
  } catch (error) {
    failed.abort(error);
    // The file is closed, and the upload aborted, only when no part is in flight.
    await Promise.allSettled(sent);
    throw error;
  }
}
