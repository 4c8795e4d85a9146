/**
 * One of the threads that serve the files of a sealed snapshot to CRIU through FUSE: they are decrypted as CRIU reads
 * them, straight into the memory they belong to. No plaintext is in a file or in the kernel's page cache.
 *
 * The thread waits in `poll`, which `terminate` does not interrupt: hence WAIT_MS.
 */
import { openSync, readSync, writevSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "#core/assert.ts";
import { readable } from "../linux/poll.ts";
import {
  answerHead,
  attributesAnswer,
  ERROR,
  entryAnswer,
  FIRST,
  initAnswer,
  nameIn,
  OP,
  openAnswer,
  REQUEST_BYTES,
  type Request,
  ROOT,
  readIn,
  requestIn,
  statfsAnswer,
  UNANSWERED,
} from "./fuse.ts";
import { SEALED_FILE, type SealedMemory } from "./sealed-memory.ts";
import { SealedReader, sealedFile } from "./sealed-reader.ts";

export interface ImageServerTask {
  /** Path of the sealed file's folder. */
  snapshot: string;
  key: Uint8Array;
  sealed: SealedMemory;
  /** What the file system was mounted with; all threads answer its requests. */
  fuse: number;
}

export interface ImageServerFault {
  fault: string;
}

const WAIT_MS = 100;

/** Numbers of files are places in the snapshot's list of files. */
const nodeOf = (at: number): number => at + FIRST;
const fileOf = (node: number): number => node - FIRST;

type Answer = readonly Buffer[] | number;

/** What each request is answered with: bytes, or the number of an error. */
const ANSWERS: Record<number, (reader: SealedReader, request: Request) => Answer> = {
  [OP.init]: (_, request) => [initAnswer(request)],
  [OP.lookup]: (reader, request) => {
    const at = reader.find(nameIn(request));
    return at === undefined ? ERROR.ENOENT : [entryAnswer(nodeOf(at), reader.length(at))];
  },
  [OP.getattr]: (reader, { node }) => [attributesAnswer(node, node === ROOT ? 0 : reader.length(fileOf(node)))],
  [OP.open]: (_, request) => [openAnswer(request)],
  [OP.read]: (reader, request) => {
    const { offset, length } = readIn(request);
    return [reader.read(fileOf(request.node), offset, length)];
  },
  [OP.statfs]: () => [statfsAnswer()],
  [OP.opendir]: (_, request) => [openAnswer(request)],
  // CRIU knows the names.
  [OP.readdir]: () => [],
  [OP.release]: () => [],
  [OP.releasedir]: () => [],
  [OP.flush]: () => [],
  [OP.destroy]: () => [],
};

/** Returns when the folder was unmounted. */
function serve(fd: number, reader: SealedReader): void {
  const room = Buffer.alloc(REQUEST_BYTES);
  for (;;) {
    if (!readable(fd, WAIT_MS)) continue;
    const length = nextRequest(fd, room);
    if (length === undefined) return;
    if (length === 0) continue;
    const request = requestIn(room.subarray(0, length));
    if (!UNANSWERED.has(request.op)) respond(fd, request, reader);
  }
}

/** 0 when there is none after all; undefined when there will be none. */
function nextRequest(fd: number, room: Buffer): number | undefined {
  try {
    return readSync(fd, room);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "ENODEV") return undefined;
    // ENOENT: it was interrupted before we read it.
    if (code === "EAGAIN" || code === "EINTR" || code === "ENOENT") return 0;
    throw thrown;
  }
}

function respond(fd: number, request: Request, reader: SealedReader): void {
  const answer = answered(request, reader);
  const parts = typeof answer === "number" ? [] : answer;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = answerHead(request.id, length, typeof answer === "number" ? answer : 0);
  try {
    writevSync(fd, [head, ...parts]);
  } catch (thrown) {
    // The requester has exited.
    if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
  }
}

/** Bytes that are not authentic are an error for CRIU, which then gives up. */
function answered(request: Request, reader: SealedReader): Answer {
  try {
    return ANSWERS[request.op]?.(reader, request) ?? ERROR.ENOSYS;
  } catch (thrown) {
    send({ fault: messageOf(thrown) });
    return ERROR.EIO;
  }
}

const send = (fault: ImageServerFault): void => parentPort?.postMessage(fault);

const { snapshot, key, sealed, fuse } = workerData as ImageServerTask;
serve(fuse, new SealedReader(sealedFile(openSync(join(snapshot, SEALED_FILE), "r")), key, sealed));
