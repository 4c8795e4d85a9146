/**
 * A node that dies at an exact step: `replication-crash-node.ts DIR PORT PRIMARY_URL STEP COUNT`, with "primary" instead of
 * a URL for one that is primary itself. Without STEP it lives. Its limits are small, so that logs are emptied, begun anew
 * and deleted every second. It says when SQLite's log was emptied.
 */
import { writeSync } from "node:fs";
import { systemClock } from "../../src/core/clock.ts";
import { startNode } from "../../src/replication/commands.ts";

const [dir = "", port = "0", url = "", step = "", count = "1"] = process.argv.slice(2);
const MIB = 1024 * 1024;
/** A primary is asked about what it told of last, which a slow listener knows some seconds later. */
const retention_bytes = (url === "primary" ? 24 : 3) * MIB;
let left = Number(count);
await startNode({
  dir,
  host: "127.0.0.1",
  port: Number(port),
  election: url === "primary" ? { kind: "primary" } : { kind: "join", url },
  clock: systemClock,
  sizes: { checkpoint_frames: 300, segment_bytes: MIB, retention_bytes, table_every_bytes: MIB },
  log: (message) => process.stdout.write(`${message}\n`),
  onFailure: (error) => {
    process.stdout.write(`failure: ${String(error)}\n`);
    process.exit(1);
  },
  step: (reached) => {
    if (reached === "relocked") process.stdout.write("emptied\n");
    if (reached !== step || --left > 0) return;
    writeSync(1, `died at ${step}\n`);
    process.kill(process.pid, "SIGKILL");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  },
});
