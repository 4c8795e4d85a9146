/** The worker thread that unpacks layers, one at a time: on the main thread that would block every request. */
import { parentPort } from "node:worker_threads";
import { assert } from "#core/assert.ts";
import { LayerFault } from "./refusal.ts";
import { type Unpacked, type UnpackTask, unpack } from "./unpack.ts";

export type UnpackResponse = { done: Unpacked } | { fault: string } | { failed: string; code?: string };

async function answer(task: UnpackTask): Promise<UnpackResponse> {
  try {
    return { done: await unpack(task) };
  } catch (thrown) {
    if (thrown instanceof LayerFault) return { fault: thrown.message };
    const { message, code } = thrown as Error & { code?: string };
    return { failed: message, ...(code === undefined ? {} : { code }) };
  }
}

assert(parentPort, "this file is a worker");
const port = parentPort;
port.on("message", (task: UnpackTask) => void answer(task).then((message) => port.postMessage(message)));
