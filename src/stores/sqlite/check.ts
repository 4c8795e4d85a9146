/**
 * Checks the database at start, read-only in a worker thread: that no acknowledged commit is missing, and that its
 * pages are consistent. The first takes a millisecond. The second reads the whole file, so a start waits for it no
 * longer than `check_wait_ms`; corruption that is found later ends the platform.
 */
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { DataDirError } from "../data-dir.ts";
import type { CheckResult } from "./check-worker.ts";
import { countFile, countOutside } from "./commit-count.ts";

export class DatabaseCheck {
  readonly #worker: Worker | undefined;
  readonly #commits: Promise<void>;
  /** Settles when everything was checked. */
  readonly done: Promise<void>;

  constructor(file: string) {
    const [commits, pages] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#commits = commits.promise;
    this.done = pages.promise;
    for (const one of [commits, pages]) one.promise.catch(() => {});
    if (!existsSync(file)) {
      if (countOutside(file) === undefined) commits.resolve();
      else commits.reject(damaged(file, "the file is missing, and all acknowledged writes with it"));
      pages.resolve();
      return;
    }
    this.#worker = new Worker(new URL("./check-worker.ts", import.meta.url), {
      workerData: file,
      name: "sqlite-check",
    });
    this.#worker.unref();
    this.#worker.on("message", ({ at, problem }: CheckResult) => {
      const one = at === "commits" ? commits : pages;
      if (problem === undefined) one.resolve();
      else for (const each of [commits, pages]) each.reject(damaged(file, problem));
    });
    this.#worker.on("error", (thrown) => {
      for (const each of [commits, pages]) each.reject(damaged(file, messageOf(thrown)));
    });
  }

  /** Rejects with problems found within the time limit. */
  async start(): Promise<void> {
    this.#worker?.ref();
    await this.#commits;
    await Promise.race([this.done, systemClock.sleep(LIMITS.check_wait_ms)]);
    this.#worker?.unref();
  }

  /** The same without a time limit. */
  async whole(): Promise<void> {
    this.#worker?.ref();
    await this.#commits;
    await this.done;
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}

function damaged(file: string, problem: string): DataDirError {
  return new DataDirError(
    `the database ${file} is damaged: ${problem}. Nothing was changed. Put the data dir aside, and fill an empty one ` +
      "from your newest backup: `hangar restore FILE`. To continue with the remaining data, copy the data dir, then: " +
      `remove ${countFile(file)} when writes are missing, or let \`sqlite3 ${file} .recover\` make a new file of the pages`,
  );
}
