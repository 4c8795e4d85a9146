import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { holdLock } from "#core/file-lock.ts";

/** The data dir cannot be used. The message says why and what to do. */
export class DataDirError extends Error {
  override readonly name = "DataDirError";
}

export interface DataDir {
  path: string;
  /** Identifies this installation across restarts. */
  node_id: string;
  file(name: string): string;
  release(): void;
}

/** Locks the data dir for this process. The pid beside the lock is only for messages. */
export function claimDataDir(path: string): DataDir {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
  } catch (cause) {
    throw new DataDirError(`the data dir ${path} cannot be made: ${(cause as Error).message}`, { cause });
  }
  const file = (name: string): string => join(path, name);
  const lock = lockOf(path, file("lock"));
  writeFileDurably(file("pid"), `${process.pid}\n`);
  return {
    path,
    node_id: readOrMake(file("node_id"), () => randomBytes(8).toString("hex")),
    file,
    release: () => lock.release(),
  };
}

/** The process that holds the data dir, or undefined. */
export function holderOf(path: string): number | undefined {
  if (!existsSync(join(path, "lock"))) return undefined;
  const lock = new DatabaseSync(join(path, "lock"), { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE; ROLLBACK");
    return undefined;
  } catch {
    return Number(readFileSync(join(path, "pid"), "utf8"));
  } finally {
    lock.close();
  }
}

function lockOf(path: string, file: string): { release(): void } {
  let lock: ReturnType<typeof holdLock>;
  try {
    lock = holdLock(file);
  } catch (cause) {
    throw new DataDirError(`the data dir ${path} cannot be locked: ${(cause as Error).message}`, { cause });
  }
  if (lock) return lock;
  const pid = existsSync(join(path, "pid")) ? readFileSync(join(path, "pid"), "utf8").trim() : "unknown";
  throw new DataDirError(
    `another hangar (pid ${pid}) is using the data dir ${path}; stop it, or set HANGAR_DATA_DIR to another place`,
  );
}

/** The master key: created at first start, readable by its owner only. */
export function masterKey(dir: DataDir): Buffer {
  const text = readOrMake(dir.file("master.key"), () => randomBytes(32).toString("base64"));
  const key = Buffer.from(text, "base64");
  if (key.length !== 32)
    throw new DataDirError(`${dir.file("master.key")} is damaged: it must hold the base64 of 32 bytes`);
  return key;
}

function readOrMake(file: string, make: () => string): string {
  if (!existsSync(file)) writeFileDurably(file, `${make()}\n`);
  return readFileSync(file, "utf8").trim();
}

/** Writes atomically: to a temporary file, synced, then renamed. */
export function writeFileDurably(file: string, content: string): void {
  const fresh = `${file}.new`;
  const fd = openSync(fresh, "w", 0o600);
  try {
    writeSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, file);
  const folder = openSync(join(file, ".."), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
