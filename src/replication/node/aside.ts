/**
 * Copies of diverged, deleted, replaced or undone databases, which are never overwritten. The oldest are deleted past
 * a limit.
 */
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import type { Undone } from "../database/recover.ts";
import { Snapshot } from "../database/snapshot.ts";
import { syncDirectory, writeAll } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeLtx } from "../ltx/codec.ts";
import type { Position } from "../position.ts";
import { finish, type Steps } from "../steps.ts";

/** Suffix after the database's name: copies of `a-1` do not belong to `a`. */
const COPY = /^\d+-[0-9a-f]+\.db$/;

export class Aside {
  readonly folder: string;
  readonly #clock: Clock;
  readonly #log: (message: string) => void;

  constructor(dir: string, clock: Clock, log: (message: string) => void) {
    this.#clock = clock;
    this.folder = join(dir, ".replication", "aside");
    this.#log = log;
  }

  /** Copies an open database, which may be overwritten next. Returns the path. */
  copy(database: ReplicatedDatabase): string {
    return finish(this.copying(database));
  }

  /** The same, in steps. */
  *copying(database: ReplicatedDatabase): Steps<string> {
    return yield* this.#writing(database.name, database.position, (fd) => writeDatabase(fd, database));
  }

  /** The state before an older file was restored: that file with the undone transactions applied. */
  *copyingUndone(database: ReplicatedDatabase, { after, last }: Undone): Steps<string> {
    return yield* this.#writing(database.name, last, function* (fd) {
      yield* writeDatabase(fd, database);
      for (let txid = after + 1; txid <= last.txid; txid++) {
        const { header, pages } = decodeLtx(database.log.read(txid) ?? Buffer.alloc(0));
        for (const { number, data } of pages) writeAll(fd, data, (number - 1) * header.page_size);
        ftruncateSync(fd, header.commit * header.page_size);
        yield;
      }
    });
  }

  *#writing(name: string, position: Position, fill: (fd: number) => Steps<void>): Steps<string> {
    const path = this.#pathOf(name, position);
    const fd = openSync(path, "w", 0o600);
    try {
      yield* fill(fd);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    this.#settle(name);
    return path;
  }

  /** Moves a closed database here, with its WAL, which needs no disk space. */
  move(name: string, path: string, position: Position): string {
    const to = this.#pathOf(name, position);
    for (const end of ["-wal", ""]) {
      if (statSync(path + end, { throwIfNoEntry: false })) renameSync(path + end, to + end);
    }
    // The modification time orders the copies.
    const now_s = this.#clock.now() / 1000;
    utimesSync(to, now_s, now_s);
    rmSync(`${path}-shm`, { force: true });
    this.#settle(name);
    return to;
  }

  #pathOf(name: string, { txid, checksum }: Position): string {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    return join(this.folder, `${name}-${txid}-${checksum.toString(16)}.db`);
  }

  #settle(name: string): void {
    syncDirectory(this.folder);
    const copies = readdirSync(this.folder)
      .filter((file) => file.endsWith(".db"))
      .map((file) => ({ file, path: join(this.folder, file) }))
      .map((copy) => ({ ...copy, at_ms: statSync(copy.path).mtimeMs }))
      .sort((a, b) => b.at_ms - a.at_ms);
    const ofName = copies.filter(({ file }) => file.startsWith(`${name}-`) && COPY.test(file.slice(name.length + 1)));
    this.#limit(ofName, REPLICATION_LIMITS.copies_aside);
    this.#limit(copies, REPLICATION_LIMITS.copies_aside_all);
  }

  #limit(copies: readonly { path: string }[], most: number): void {
    for (const { path } of copies.slice(most)) {
      this.#log(`${path}: deleted, because there are ${most} newer copies`);
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
    }
  }
}

function* writeDatabase(fd: number, database: ReplicatedDatabase): Steps<void> {
  const snapshot = Snapshot.take(database);
  if (!snapshot) throw new Error(`${database.name} is being written to`);
  try {
    for (const bytes of snapshot.file()) {
      writeAll(fd, bytes);
      yield;
    }
  } finally {
    snapshot.close();
  }
}
