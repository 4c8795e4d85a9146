import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { fail } from "#core/errors.ts";
import { LayerFault } from "./refusal.ts";
import type { Unpacked, UnpackTask } from "./unpack.ts";
import type { UnpackResponse } from "./unpack-worker.ts";

const WORKER = new URL("./unpack-worker.ts", import.meta.url);
/** Enough for the names of a million entries. */
const HEAP_MB = 1024;
/** Idle threads end after this. Reusing one saves a tenth of a second per layer. */
const IDLE_MS = 5000;

const idle: { worker: Worker; end: NodeJS.Timeout }[] = [];

/** Unpacks one layer in a worker thread. An invalid layer is a `LayerFault`; an abort ends the thread at once. */
export async function unpackLayer(task: UnpackTask, signal: AbortSignal): Promise<Unpacked> {
  signal.throwIfAborted();
  const worker = takeWorker();
  const stop = (): void => void worker.terminate();
  signal.addEventListener("abort", stop);
  const over = new AbortController();
  try {
    worker.postMessage(task);
    const answer = await Promise.race([
      once(worker, "message", over).then(([message]) => message as UnpackResponse),
      once(worker, "exit", over).then((): UnpackResponse => ({ failed: "the thread that unpacked it ended early" })),
    ]);
    signal.throwIfAborted();
    giveBack(worker);
    return understood(answer);
  } catch (thrown) {
    signal.throwIfAborted();
    if ((thrown as { code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY")
      throw new LayerFault("its list of names does not fit into memory", { cause: thrown });
    throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
    over.abort();
    if (!idle.some((one) => one.worker === worker)) await worker.terminate();
  }
}

function takeWorker(): Worker {
  const waiting = idle.pop();
  if (!waiting) return new Worker(WORKER, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } });
  clearTimeout(waiting.end);
  waiting.worker.ref();
  return waiting.worker;
}

/** Neither the thread nor its timer keeps the process alive. */
function giveBack(worker: Worker): void {
  worker.unref();
  const end = setTimeout(() => {
    idle.splice(
      idle.findIndex((one) => one.worker === worker),
      1,
    );
    void worker.terminate();
  }, IDLE_MS).unref();
  idle.push({ worker, end });
}

function understood(answer: UnpackResponse): Unpacked {
  if ("done" in answer) return answer.done;
  if ("fault" in answer) throw new LayerFault(answer.fault);
  if (answer.code === "ENOSPC" || answer.code === "EDQUOT")
    fail("storage_full", `the layer does not fit on the disk: ${answer.failed}`, {
      hint: "`hangar images gc --dry-run` says what can go",
    });
  throw Object.assign(new Error(`unpacking failed: ${answer.failed}`), { code: answer.code });
}
