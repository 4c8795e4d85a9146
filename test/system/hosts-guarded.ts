/** Opens the fence of a host, says once how long things may run, and then does nothing more. */
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { openFence } from "#drivers/runtime/runc/fence.ts";

const [data_dir = "", node_id = "", left_ms] = process.argv.slice(2);
openFence({ data_dir, node_id, clock: systemClock, log: silentLog }).extend(Number(left_ms));
process.stdout.write("extended\n");
setInterval(() => {}, 60_000);
