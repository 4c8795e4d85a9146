/** What tests of files put in place of a database share: nodes that have notes, and files that others made. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { makeNotes, nodePair, type Pair, sqlite } from "./replication-apps.ts";
import type { Process } from "./replication-support.ts";

/** A primary and its replica with 20 notes in `db`, at `path` on the primary, and one in `other`. */
export async function notesOnBoth(t: TestContext): Promise<{ pair: Pair; path: string; primary: Process }> {
  const pair = await nodePair(t);
  const primary = await pair.start("primary");
  await pair.start("replica");
  const path = pair.path("primary", "db");
  makeNotes(path, 20);
  makeNotes(pair.path("primary", "other"), 1);
  await pair.caughtUp("db", 20);
  await pair.caughtUp("other", 1);
  return { pair, path, primary };
}

export interface FileOptions {
  page_size?: number;
  journal_mode?: "WAL" | "DELETE";
}

/** A database with so many notes in a folder of its own, made and closed by sqlite3. */
export function fileWith(
  pair: Pair,
  rows: number,
  { page_size = 4096, journal_mode = "WAL" }: FileOptions = {},
): string {
  const path = join(pair.stage.dir(), "made");
  makeNotes(path, rows, page_size);
  sqlite(path, `PRAGMA journal_mode = ${journal_mode}`);
  return path;
}

/** A file of random bytes. */
export function junkFile(pair: Pair): string {
  const path = join(pair.stage.dir(), "junk");
  execFileSync("dd", ["if=/dev/urandom", `of=${path}`, "bs=4k", "count=4"], { stdio: "ignore" });
  return path;
}

/** What the primary says about `db`, when it says this. */
export const isState = (pair: Pair, state: string) => async () => {
  const found = (await pair.info("primary"))?.states["db"];
  return found?.state === state ? found : undefined;
};
