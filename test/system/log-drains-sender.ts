/** Sends the logs of the machines in a folder to a drain, and rotates them, as the platform does, until it is killed. */
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { layoutOf, pathsOf } from "#drivers/runtime/runc/layout.ts";
import { LogKeeper } from "#drivers/runtime/runc/logs/log-keeper.ts";
import { aDrain, drainHost } from "../log-drain-host.ts";

const [data = "", containers = "", logs = "", url = ""] = process.argv.slice(2);
const layout = { ...layoutOf(data, "0000"), containers, logs };
const host = { layout, machine: (id: string) => pathsOf(layout, id) };
const { sending } = drainHost([aDrain({ kind: "loki", target: { url } })], { host });
const keeper = new LogKeeper(layout, KEPT_LOGS, { clock: systemClock, log: silentLog });
process.stdout.write("ready\n");
for (;;) {
  await keeper.look();
  await sending.look();
  await delay(5);
}
