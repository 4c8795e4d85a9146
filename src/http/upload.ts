import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Row } from "./route.ts";

const TYPES = ["application/x-tar", "application/octet-stream", "application/gzip", "application/zstd"];

/** Connections with an upload, which have no request timeout. */
const uploading = new WeakSet<Duplex>();

/** For a relayed request. Returns the function that ends it. */
export function uploads(socket: Duplex): () => void {
  uploading.add(socket);
  return () => void uploading.delete(socket);
}

export const isUploading = (socket: Duplex): boolean => uploading.has(socket);

const NO_UPLOAD: AsyncIterable<Uint8Array> = (async function* () {})();

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

/** The body of an upload route. */
export const uploadOf = (row: Row, request: FastifyRequest, clock: Clock): AsyncIterable<Uint8Array> =>
  row.upload ? chunksOf(request, clock) : NO_UPLOAD;

async function* chunksOf({ raw, body }: FastifyRequest, clock: Clock): AsyncGenerator<Uint8Array> {
  if (body !== raw) {
    fail("unsupported_media_type", `send the file as the body, with one of the content types ${TYPES.join(", ")}`);
  }
  yield* piecesOf(raw, clock);
}

/** Streams a body with a stall timeout, because the whole has none. */
export async function* piecesOf(request: IncomingMessage, clock: Clock): AsyncGenerator<Uint8Array> {
  uploading.add(request.socket);
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const waited = new AbortController();
      const late = clock
        .sleep(LIMITS.upload_stall_ms, waited.signal)
        .then(() => fail("request_timeout", "the upload stalled (limit upload_stall_ms)"));
      late.catch(() => {});
      const next = await Promise.race([chunks.next(), late]).finally(() => waited.abort());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    uploading.delete(request.socket);
  }
}
