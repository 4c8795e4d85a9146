/** Keeps the logs of the machines in a folder, as the platform does, until it is killed. */
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { layoutOf } from "#drivers/runtime/runc/layout.ts";
import { LogKeeper } from "#drivers/runtime/runc/logs/log-keeper.ts";

const [data = "", containers = ""] = process.argv.slice(2);
const layout = { ...layoutOf(data, "0000"), containers };
const keeper = new LogKeeper(layout, KEPT_LOGS, { clock: systemClock, log: silentLog });
process.stdout.write("ready\n");
await keeper.look();
process.stdout.write("done\n");
