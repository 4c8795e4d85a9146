/** The worker thread that searches logs, one search at a time: on the main thread that would block every request. */
import { parentPort } from "node:worker_threads";
import { assert, messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import type { LogFound, LogSearch } from "#machines/logs/search.ts";
import type { MachinePaths } from "../layout.ts";
import { searchLogs } from "./search.ts";

export interface SearchTask {
  search: LogSearch;
  /** By machine. */
  paths: Record<string, Pick<MachinePaths, "log" | "logs">>;
}

export type SearchResponse =
  | { found: LogFound; damage: { file: string; message: string }[] }
  | { failed: string; code?: string };

async function answer({ search, paths }: SearchTask): Promise<SearchResponse> {
  const damage: { file: string; message: string }[] = [];
  try {
    const found = await searchLogs(search, {
      paths(id) {
        const own = paths[id];
        assert(own, `no paths of ${id}`);
        return own;
      },
      clock: systemClock,
      onDamage: (file, error) => void damage.push({ file, message: messageOf(error) }),
    });
    return { found, damage };
  } catch (thrown) {
    const { message, code } = thrown as Error & { code?: string };
    return { failed: message, ...(code === undefined ? {} : { code }) };
  }
}

assert(parentPort, "this file is a worker");
const port = parentPort;
port.on("message", (task: SearchTask) => void answer(task).then((message) => port.postMessage(message)));
