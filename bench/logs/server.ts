/**
 * Keeps and searches the logs in a folder as a host does, alone in its process.
 *
 *     node server.ts DATA CONTAINERS      answers each line of JSON that it reads with one
 */
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { layoutOf, pathsOf } from "#drivers/runtime/runc/layout.ts";
import { archivedIn } from "#drivers/runtime/runc/logs/files.ts";
import { LogKeeper } from "#drivers/runtime/runc/logs/log-keeper.ts";
import { searchLogs } from "#drivers/runtime/runc/logs/search.ts";
import type { LogKey, LogSearch } from "#machines/logs/search.ts";

export type Asked = { do: "look" } | { do: "settle" } | { do: "bytes"; ids: string[] } | Searching;
export type Searching = { do: "search"; search: LogSearch; all: boolean };

const DAY_MS = 24 * 3600 * 1000;

const [data = "", containers = ""] = process.argv.slice(2);
const layout = { ...layoutOf(data, "0000"), containers };
const ahead = { ms: 0 };
const clock = { ...systemClock, now: () => systemClock.now() + ahead.ms };
const keeper = new LogKeeper(layout, KEPT_LOGS, { clock, log: silentLog });
const parts = { paths: (id: string) => pathsOf(layout, id), clock: systemClock, onDamage: keeper.onDamage };

async function answer(asked: Asked): Promise<number> {
  if (asked.do === "look") await keeper.look();
  else if (asked.do === "settle") {
    // Logs of a day are rotated, and archived at the look after that, when the monitor has begun another.
    ahead.ms = 2 * DAY_MS;
    await keeper.look();
    for (const id of readdirSync(layout.containers)) writeFileSync(pathsOf(layout, id).log, "");
    await keeper.look();
    ahead.ms = 0;
  } else if (asked.do === "bytes") return await archivedBytes(asked.ids);
  else return await found(asked);
  return 0;
}

async function archivedBytes(ids: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const id of ids) {
    const { logs } = pathsOf(layout, id);
    for (const { name } of await archivedIn(logs)) bytes += statSync(`${logs}/${name}`).size;
  }
  return bytes;
}

/** How many lines a search finds: on its first page, or on all. */
async function found({ search, all }: Searching): Promise<number> {
  let lines = 0;
  let after: LogKey | undefined;
  do {
    const page = await searchLogs({ ...search, ...(after ? { after } : {}) }, parts);
    lines += page.lines.length;
    after = page.next;
  } while (after && (all || lines < search.limit));
  // A page that ends early, by its time, is followed by a whole one.
  return all ? lines : Math.min(lines, search.limit);
}

process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${await answer(JSON.parse(line) as Asked)}\n`);
