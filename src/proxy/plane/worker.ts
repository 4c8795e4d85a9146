/** A worker thread of the edge proxy: runs a data plane that receives commands and sends reports. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import type { WorkerCommand, WorkerSettings } from "../table.ts";
import { Plane } from "./plane.ts";

const port = parentPort;
assert(port, "this is a worker thread");
const plane = new Plane(workerData as WorkerSettings, {
  clock: systemClock,
  report(report) {
    port.postMessage(report);
    // All earlier reports have been sent.
    if (report.type === "drained") setImmediate(() => process.exit(0));
  },
});
port.on("message", (order: WorkerCommand) => plane.apply(order));
