/** A replica that dies at an exact step: `replication-crash-node.ts DIR PORT PRIMARY_URL STEP COUNT`. Without STEP it lives. */
import { writeSync } from "node:fs";
import { systemClock } from "../../src/core/clock.ts";
import { startNode } from "../../src/replication/commands.ts";

const [dir = "", port = "0", url = "", step = "", count = "1"] = process.argv.slice(2);
let left = Number(count);
await startNode({
  dir,
  host: "127.0.0.1",
  port: Number(port),
  election: { kind: "join", url },
  clock: systemClock,
  checkpoint_frames: 300,
  log: (message) => process.stdout.write(`${message}\n`),
  onFailure: (error) => {
    process.stdout.write(`failure: ${String(error)}\n`);
    process.exit(1);
  },
  step: (reached) => {
    if (reached !== step || --left > 0) return;
    writeSync(1, `died at ${step}\n`);
    process.kill(process.pid, "SIGKILL");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  },
});
