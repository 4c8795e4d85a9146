/**
 * A database whose file was written to outside SQLite, with `cp` for example. The node holds its write lock meanwhile,
 * if it can, so that applications do not mix the two. When the file stops changing it is one of three things:
 *
 *   as before   it was only touched
 *   another     an intact database: a copy of it takes its name, and replaces the old one once no process uses that
 *   damaged     replicas keep theirs, and the node waits for an intact file
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { syncDirectory, writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { type Steps, WAIT } from "../steps.ts";
import { type DatabaseFiles, identityAt } from "../wal/files.ts";
import { lockHolders } from "../wal/lock-holders.ts";
import { scanningTable } from "../wal/scan.ts";
import type { Problems } from "./problems.ts";

/** Read and written at once. */
const COPY_BYTES = 1024 * 1024;

interface Place {
  dir: string;
  clock: Clock;
  problems: Problems;
}

/**
 * Returns when another file has its name and no process uses the old one, or when it is unchanged, and held. SQLite may
 * refuse the lock, because it finds pages of two databases; then applications continue with cached pages.
 */
export function* settleOverwritten(
  database: ReplicatedDatabase,
  { dir, clock, problems }: Place,
): Steps<"as before" | "another"> {
  const { name, path } = database;
  const { files } = database.source;
  const renamed = (): boolean => identityAt(path) !== files.identities.database;
  for (;;) {
    const held = yield* hold(database);
    const seen = yield* standingStill(files, clock);
    if (held && !renamed() && (yield* isAsBefore(database))) return "as before";
    const users = lockHolders(`${path}-shm`);
    if (users.length > 0) {
      problems.set(name, "replaced", inUse(users));
      yield WAIT;
      continue;
    }
    const verdict = renamed() ? "ok" : yield* takeFile(database, dir, seen);
    if (verdict === "ok") return "another";
    problems.set(name, "damaged", reasonFor(name, verdict));
    while (stampOf(files) === seen && !renamed()) yield WAIT;
  }
}

/** Renames a copy over the file, if that is a valid database: "ok", or the problem. `seen`: what to copy. */
function* takeFile(database: ReplicatedDatabase, dir: string, seen: string): Steps<string> {
  const { name, path } = database;
  const { files } = database.source;
  const copy = join(dir, ".replication", `${name}.overwritten`);
  try {
    yield* copyFile(files, copy);
    const verdict = yield* verdictOn(copy, files.databaseBytes());
    if (stampOf(files) !== seen) return "it is still being written";
    if (verdict !== "ok") return verdict;
    renameSync(copy, path);
    syncDirectory(dir);
    return verdict;
  } finally {
    for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(copy + end, { force: true });
  }
}

/** Waits while an application writes. Returns false when SQLite cannot read the file any more. */
function* hold(database: ReplicatedDatabase): Steps<boolean> {
  try {
    while (!database.hold()) yield WAIT;
    return true;
  } catch {
    return false;
  }
}

const inUse = (users: readonly number[]): string =>
  `its file was overwritten in place, and process ${users.join(" and ")} still uses what it was before: stop it`;

const reasonFor = (name: string, verdict: string): string =>
  `its file was overwritten in place, and is no whole database (${verdict}); replicas keep theirs. Get theirs ` +
  `(hangar db export NODE ${name} FILE), or another good file, and rename it over this one (mv)`;

const stampOf = (files: DatabaseFiles): string => {
  const { size, mtime } = files.stamp();
  return `${size} ${mtime}`;
};

/** Waits until the file has not changed for a while. */
function* standingStill(files: DatabaseFiles, clock: Clock): Steps<string> {
  let seen = stampOf(files);
  let since_ms = clock.monotonic();
  while (clock.monotonic() - since_ms < REPLICATION_LIMITS.overwritten_ms) {
    yield WAIT;
    if (stampOf(files) === seen) continue;
    seen = stampOf(files);
    since_ms = clock.monotonic();
  }
  return seen;
}

function* isAsBefore(database: ReplicatedDatabase): Steps<boolean> {
  const { files, moment } = database.source;
  const table = yield* scanningTable(files, moment);
  return table.checksum === database.position.checksum;
}

/** Through the open descriptor: closing another one would drop this process's POSIX locks. */
function* copyFile(files: DatabaseFiles, to: string): Steps<void> {
  const fd = openSync(to, "w", 0o600);
  try {
    // It gets the name, and applications may run as another user.
    const { mode, uid, gid } = fstatSync(files.database);
    fchownSync(fd, uid, gid);
    fchmodSync(fd, mode & 0o777);
    const bytes = Buffer.alloc(COPY_BYTES);
    for (let at = 0; ; ) {
      const read = readSync(files.database, bytes, 0, COPY_BYTES, at);
      if (read === 0) break;
      writeAll(fd, bytes.subarray(0, read), at);
      at += read;
      yield;
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function* verdictOn(path: string, bytes: number): Steps<string> {
  // SQLite treats an empty file as an empty database.
  if (bytes === 0) return "it is empty";
  const said: { verdict?: string } = {};
  const thread = new Worker(new URL("../database/check-thread.ts", import.meta.url), { workerData: path });
  thread.unref();
  thread.on("message", (verdict: string) => {
    said.verdict = verdict;
  });
  thread.on("error", (error: unknown) => {
    said.verdict = String(error);
  });
  try {
    while (said.verdict === undefined) yield WAIT;
    return said.verdict;
  } finally {
    void thread.terminate();
  }
}
