/** A thread that serves CRIU the files of a sealed snapshot while it restores a machine. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { CallError, detach } from "../linux/calls.ts";
import type { ImageServerMessage, ImageServerTask } from "./image-server-worker.ts";

const WORKER = new URL("./image-server-worker.ts", import.meta.url);

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
  readonly #worker: Worker;
  readonly #over: Promise<unknown>;
  #fault: string | undefined;

  private constructor(task: ImageServerTask) {
    this.#images = task.images;
    this.#worker = new Worker(WORKER, { workerData: task, name: "image-server" });
    this.#worker.on("message", (message: ImageServerMessage) => {
      if (message !== "mounted") this.#fault ??= message.fault;
    });
    this.#worker.on("error", (error) => {
      this.#fault ??= error.message;
    });
    this.#over = once(this.#worker, "exit");
  }

  /** Resolves when CRIU can read. Rejects when the snapshot is not what was sealed. */
  static async open(task: ImageServerTask): Promise<ServedImages> {
    const server = new ImageServer(task);
    await Promise.race([once(server.#worker, "message"), server.#over]);
    if (server.#fault) throw new ImageServerError(server.#fault);
    return server;
  }

  async fault(): Promise<string | undefined> {
    await this[Symbol.asyncDispose]();
    return this.#fault;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    unmount(this.#images);
    await this.#worker.terminate();
    await this.#over;
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
