import { statfs } from "node:fs/promises";
import { availableParallelism, freemem, loadavg, release, totalmem, type } from "node:os";
import { isoTime } from "#core/clock.ts";
import { VERSION } from "#core/version.ts";
import { Type } from "./schema.ts";

/** Facts about the running platform. */
export interface PlatformFacts {
  base_url: string;
  /** The listening address for programs on this host; empty before it listens, and for a host without an API. */
  own_url: string;
  driver: string;
  database: string;
  data_dir: string;
  started_ms: number;
  /** For display. */
  machine_io: string;
}

const text = Type.String();
const count = Type.Number();

export const FactsResponse = Type.Object({
  version: text,
  base_url: text,
  driver: text,
  database: text,
  machine_io: Type.String({ description: "How fast each machine may read and write each of its disks." }),
  started_at: text,
  node: text,
  system: text,
  cpus: count,
  load: Type.Array(count, { description: "Over 1, 5 and 15 minutes." }),
  memory_bytes: Type.Number({ description: "Taken by the platform itself." }),
  box_memory_bytes: count,
  box_free_bytes: count,
  disk_bytes: Type.Number({ description: "Of the disk that the data dir is on." }),
  disk_free_bytes: count,
});

export async function factsNow({ data_dir, started_ms, ...facts }: PlatformFacts) {
  const { blocks, bavail, bsize } = await statfs(data_dir);
  return {
    version: VERSION,
    ...facts,
    started_at: isoTime(started_ms),
    node: process.version,
    system: `${type()} ${release()}`,
    cpus: availableParallelism(),
    load: loadavg(),
    memory_bytes: process.memoryUsage.rss(),
    box_memory_bytes: totalmem(),
    box_free_bytes: freemem(),
    disk_bytes: blocks * bsize,
    disk_free_bytes: bavail * bsize,
  };
}
