/** Contents of files, of any length, as bodies of requests and responses. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import type { Exchange } from "#http/route.ts";
import { piecesOf } from "#http/upload.ts";
import { fieldsOf, modeText } from "./fields.ts";
import type { FileRun } from "./helper.ts";
import type { FileCaller } from "./operations.ts";

interface Transfer extends FileCaller {
  exchange: Exchange;
  clock: Clock;
}

/** Sends a file. It has no length before its end, since it may grow; when it cannot be read to its end the connection breaks. */
export async function sendFile({ helper, sprite, signal, exchange, clock }: Transfer, path: string): Promise<void> {
  const { response } = exchange;
  await helper.run(sprite, { words: ["read", path], path, is_long: true }, signal, async (run) => {
    const pieces = (run.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    let piece = await pieces.next();
    if (piece.done) await run.finished();
    exchange.takeOver();
    response.writeHead(200, { "content-type": "application/octet-stream", "cache-control": "no-store" });
    try {
      for (; !piece.done; piece = await pieces.next())
        if (!response.write(piece.value)) await drained(response, clock, signal);
      await run.finished();
      response.end();
    } catch {
      response.destroy();
    }
  });
}

/** Waits for a reader; one that takes nothing for too long is disconnected. */
async function drained(response: ServerResponse, clock: Clock, signal: AbortSignal): Promise<void> {
  const settled = new AbortController();
  const until = AbortSignal.any([signal, settled.signal]);
  const late = clock.sleep(LIMITS.stream_stall_ms, until).then(() => response.destroy());
  late.catch(() => {});
  try {
    if (!response.closed)
      await Promise.race([once(response, "drain", { signal: until }), once(response, "close", { signal: until })]);
    if (response.closed) throw new Error("the reader has left");
  } finally {
    settled.abort();
  }
}

export interface WriteInput {
  path: string;
  /** Octal, or empty for that of the file that it replaces. */
  mode: string;
  parents: keyof typeof PARENTS;
  folder_mode: string;
}

/** Which folders are made when they are missing: none, the one of the file, or all. */
const PARENTS = { none: "0", last: "1", all: "2" } as const;

/** Writes a file whole, or not at all: it has its name when all of it is on the disk. */
export async function receiveFile(
  { helper, sprite, signal, exchange, clock }: Transfer,
  { path, mode, parents, folder_mode }: WriteInput,
): Promise<{ path: string; size: number; mode: string }> {
  const words = ["write", path, mode, PARENTS[parents], folder_mode || "0755"];
  return await helper.run(sprite, { words, path, is_long: true }, signal, async (run) => {
    const written: string[] = [];
    const answer = (async () => {
      for await (const field of fieldsOf(run.stdout)) written.push(field);
    })();
    answer.catch(() => {});
    try {
      for await (const piece of piecesOf(exchange.request, clock, signal)) if (!(await give(run, piece))) break;
      await give(run, Buffer.alloc(0));
    } catch (thrown) {
      // It then removes what it has, which a killed one could not on every file system.
      run.stdin.end();
      await Promise.race([run.ended, clock.sleep(UNDO_MS)]);
      throw thrown;
    }
    run.stdin.end();
    await run.finished();
    await answer;
    return { path, size: Number(written[0]), mode: modeText(Number.parseInt(written[1] ?? "0", 8)) };
  });
}

const UNDO_MS = 2000;
const LENGTH_BYTES = 4;

/** A piece after its length. False when nobody takes any more. */
async function give({ stdin, ended }: FileRun, piece: Uint8Array): Promise<boolean> {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(piece.length);
  if (stdin.destroyed) return false;
  stdin.write(length);
  if (stdin.write(piece)) return true;
  const settled = new AbortController();
  const { signal } = settled;
  const taken = once(stdin, "drain", { signal }).then(() => true);
  const left = Promise.race([ended, once(stdin, "close", { signal })]).then(() => false);
  return await Promise.race([taken, left])
    .catch(() => false)
    .finally(() => settled.abort());
}
