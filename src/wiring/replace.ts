/**
 * One platform in place of another, without a moment in which no service port is open:
 *
 *   the new one                        the old one
 *   SIGUSR2                      →     closes everything but its open ports, and lets go of the data dir
 *   starts, opens the same ports       goes on answering by what it knows
 *   SIGTERM                      →     takes no more, answers what it has, ends
 *
 * The kernel lets both have the same ports. Machines do not notice: they outlive a platform anyway. When the new one
 * never comes, the old one ends after a while, because without a data dir it learns nothing any more.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Settings } from "#core/settings.ts";
import { DataDirError, holderOf } from "#stores/data-dir.ts";
import { refuseNewer } from "#stores/migrate.ts";
import { openDatabase } from "#stores/open.ts";
import type { Platform } from "../platform.ts";

const ASK = "SIGUSR2";
const LIMITS = {
  /** Time for the old process to release the data dir. Past it: the new one gives up. */
  release_ms: 60_000,
  look_ms: 10,
  /** Time the old process waits for the new one's ports. Past it: it exits. */
  wait_ms: 60_000,
} as const;

type Print = (text: string) => void;

/** Asks the running platform to hand over; returns the function that tells it to close its ports. */
export async function replaceRunning(settings: Settings, print: Print): Promise<{ leave(): void } | undefined> {
  const { data_dir } = settings;
  const pid = holderOf(data_dir);
  if (pid === undefined) return undefined;
  await fitToReplace(settings);
  print(`asking the running platform (pid ${pid}) to make room`);
  process.kill(pid, ASK);
  for (let waited = 0; holderOf(data_dir) === pid; waited += LIMITS.look_ms) {
    if (waited > LIMITS.release_ms)
      throw new DataDirError(`pid ${pid} did not release ${data_dir} within ${LIMITS.release_ms / 1000} s`);
    await sleep(LIMITS.look_ms);
  }
  return {
    leave: () => {
      try {
        process.kill(pid, "SIGTERM");
      } catch {
        // It has already exited.
      }
    },
  };
}

/** Checked first: a version too old for the data would otherwise fail after the running platform has gone. */
async function fitToReplace(settings: Settings): Promise<void> {
  const database = await openDatabase(settings);
  try {
    await refuseNewer(database);
  } finally {
    await database.close();
  }
}

/** The old process's side. `begin` is called at the start of the hand-over, after which the process exits by itself. */
export function yieldWhenAsked(platform: Pick<Platform, "handOver">, print: Print, begin: () => void): void {
  process.once(ASK, () => {
    begin();
    print("another platform takes over; its ports are waited for");
    const terminated = new Promise<void>((resolve) => process.once("SIGTERM", resolve));
    platform
      .handOver()
      .then(async (leave) => {
        await Promise.race([terminated, sleep(LIMITS.wait_ms, undefined, { ref: false })]);
        await leave();
        process.exit(0);
      })
      .catch((error: unknown) => {
        process.stderr.write(`hangar: handing over failed: ${String(error)}\n`);
        process.exit(1);
      });
  });
}
