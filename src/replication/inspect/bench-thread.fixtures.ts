/** `hangar db bench` in a thread of its own: its writer waits inside SQLite, and the nodes of the test must go on meanwhile. */
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "#core/clock.ts";
import { bench } from "./bench.ts";
import { survey } from "./survey.ts";

const found = await survey([String(workerData)], systemClock);
parentPort?.postMessage(await bench(found, { seconds: 0.3, clock: systemClock, synchronous: "NORMAL" }));
