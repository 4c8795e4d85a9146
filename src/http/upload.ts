import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";

const TYPES = ["application/x-tar", "application/octet-stream", "application/gzip", "application/zstd"];

/** Connections with an upload, which have no request timeout. */
const uploading = new WeakSet<Duplex>();

/** Lifts the timeout for a streamed body. Returns the function that restores it for the rest of the body. */
export function uploads(socket: Duplex): () => void {
  uploading.add(socket);
  return () => void uploading.delete(socket);
}

export const isUploading = (socket: Duplex): boolean => uploading.has(socket);

/** The upload of a route without one. */
export const NO_UPLOAD: AsyncIterable<Uint8Array> = (async function* () {})();

/** Bodies of these types are not parsed: an upload route reads them itself. */
export function passUploads(app: FastifyInstance): void {
  app.addContentTypeParser(TYPES, (request, body, done) => {
    if (request.routeOptions.config.upload) return done(null, body);
    const type = request.headers["content-type"]?.slice(0, 100);
    done(
      new ApiError("unsupported_media_type", `bodies of type ${type} are not supported here; send application/json`),
    );
  });
}

/** The body of an upload route, until its sender loses access. */
export async function* uploadOf(
  { raw, body }: FastifyRequest,
  clock: Clock,
  allowed: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (body !== raw) {
    fail("unsupported_media_type", `send the file as the body, with one of the content types ${TYPES.join(", ")}`);
  }
  yield* piecesOf(raw, clock, allowed);
}

/** Streams a body with a stall timeout, because the whole has none. */
export async function* piecesOf(
  request: IncomingMessage,
  clock: Clock,
  allowed: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => {});
  const refuse = (): void =>
    refused.reject(
      new ApiError("unauthorized", `the upload was ended: ${messageOf(allowed.reason)}`, {
        headers: { connection: "close" },
      }),
    );
  if (allowed.aborted) refuse();
  allowed.addEventListener("abort", refuse, { once: true });
  try {
    for (;;) {
      const waited = new AbortController();
      const late = clock
        .sleep(LIMITS.upload_stall_ms, waited.signal)
        .then(() => fail("request_timeout", "the upload stalled (limit upload_stall_ms)"));
      late.catch(() => {});
      const next = await Promise.race([refused.promise, chunks.next(), late]).finally(() => waited.abort());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    allowed.removeEventListener("abort", refuse);
  }
}
