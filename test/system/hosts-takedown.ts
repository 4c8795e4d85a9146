/** Ends what is left of a host on the box it runs on, and says what is left then: `hosts-takedown.ts DATA_DIR`. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { traces } from "../volumes.ts";
import { census, nodeIdOf } from "./leaks.ts";

const [data_dir = ""] = process.argv.slice(2);
// What is waited for does not keep a process alive by itself.
const waiting = setInterval(() => {}, 60_000);
if (existsSync(join(data_dir, "node_id"))) {
  const installation = { data_dir, node_id: nodeIdOf(data_dir) };
  await takeDown({ ...installation, clock: systemClock, log: silentLog });
  // Volumes stay mounted while their platform may come back. The last one mounted goes first, its loop device with it.
  for (const mount of traces(data_dir).mounts.reverse()) spawnSync("umount", [mount]);
  // What is on the disk stays, so that machines are found again.
  const { machines: _, ...left } = census(installation);
  process.stdout.write(`left ${JSON.stringify(left)}\n`);
}
clearInterval(waiting);
