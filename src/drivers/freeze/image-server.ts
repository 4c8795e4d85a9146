/** Serves CRIU the files of a sealed snapshot while it restores a machine. */

import { closeSync, constants, openSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { CallError, detach, MS, mount } from "../linux/calls.ts";
import { READ_BYTES } from "./fuse.ts";
import type { ImageServerFault, ImageServerTask } from "./image-server-worker.ts";
import { SEALED_FILE, type SealedMemory, sealedBytes } from "./sealed-memory.ts";
import { WRONG_LENGTH } from "./sealed-reader.ts";

const WORKER = new URL("./image-server-worker.ts", import.meta.url);
/** CRIU itself needs a processor too, but not all of the time. */
const THREADS = Math.min(3, availableParallelism());
/** CRIU reads as root and as the machine's root; the folder is below one that only root may enter. */
const OPTIONS = `rootmode=40000,user_id=0,group_id=0,allow_other,max_read=${READ_BYTES}`;

export interface SealedSnapshot {
  /** Paths of the sealed file's folder and of the mount point that CRIU reads from. */
  snapshot: string;
  images: string;
  key: Uint8Array;
  sealed: SealedMemory;
}

/** CRIU could not read its files: the snapshot is not what was sealed, or the thread failed. */
export class ImageServerError extends Error {
  override readonly name = "ImageServerError";
}

/** Images that CRIU can read until they are disposed of. */
export interface ServedImages extends AsyncDisposable {
  /** Why CRIU did not get its files, or undefined. Call it when CRIU has ended. */
  fault(): Promise<string | undefined>;
}

export class ImageServer implements ServedImages {
  readonly #images: string;
  readonly #fuse: number;
  readonly #threads: readonly Worker[];
  readonly #over: Promise<unknown>;
  #fault: string | undefined;
  #stopped: Promise<void> | undefined;

  /** CRIU can read at once; what it asks for waits for the threads. Throws when the snapshot is not what was sealed. */
  constructor({ snapshot, images, key, sealed }: SealedSnapshot) {
    if (statSync(join(snapshot, SEALED_FILE)).size !== sealedBytes(sealed)) throw new ImageServerError(WRONG_LENGTH);
    this.#images = images;
    this.#fuse = mounted(images);
    const task: ImageServerTask = { snapshot, key, sealed, fuse: this.#fuse };
    this.#threads = Array.from(
      { length: THREADS },
      () => new Worker(WORKER, { workerData: task, name: "image-server" }),
    );
    for (const thread of this.#threads) {
      thread.on("message", ({ fault }: ImageServerFault) => (this.#fault ??= fault));
      thread.on("error", (error) => {
        this.#fault ??= error.message;
        // Otherwise CRIU waits for its answer.
        void this.#stop();
      });
    }
    this.#over = Promise.all(this.#threads.map((thread) => new Promise((resolve) => void thread.on("exit", resolve))));
  }

  async fault(): Promise<string | undefined> {
    await this[Symbol.asyncDispose]();
    return this.#fault;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    unmount(this.#images);
    await this.#stop();
  }

  /** What is asked from now on, or has no answer yet, is an error. */
  #stop(): Promise<void> {
    this.#stopped ??= (async () => {
      await Promise.all(this.#threads.map((thread) => thread.terminate()));
      await this.#over;
      // No thread reads from it any more, so its number may stand for another file.
      closeSync(this.#fuse);
    })();
    return this.#stopped;
  }
}

/** The file whose requests the threads answer. */
function mounted(folder: string): number {
  const fuse = openSync("/dev/fuse", constants.O_RDWR | constants.O_NONBLOCK);
  try {
    mount("hangar", folder, "fuse", MS.RDONLY | MS.NOSUID | MS.NODEV | MS.NOEXEC, `fd=${fuse},${OPTIONS}`);
    return fuse;
  } catch (thrown) {
    closeSync(fuse);
    throw thrown;
  }
}

function unmount(folder: string): void {
  try {
    detach(folder);
  } catch (thrown) {
    // Not mounted, or removed.
    if (!(thrown instanceof CallError)) throw thrown;
  }
}
