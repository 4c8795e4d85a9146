/**
 * The files of a machine's log, oldest first: archived ones, then `log.1`, then `log`, which the monitor writes. A file is
 * identified by the time of its first line, and keeps that when it is renamed and archived; so do places in it, which
 * count bytes as they were written.
 */
import { type FileHandle, open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ArchivedBlock, blocksWith, DamagedLog, readBlock } from "./archived.ts";
import { GrowingBlocks } from "./growing-blocks.ts";
import { type Block, nanosOf, stampAt } from "./parse.ts";

export interface LogFile {
  path: string;
  /** Nanoseconds of the first line. */
  first: string;
  /** Nanoseconds of the oldest and the newest line; of a file that is not archived, of its first and last. */
  min: string;
  max: string;
  raw?: { handle: FileHandle; size: number /** See `ARCHIVED_MODE`. */; has_mark: boolean };
}

/** Of all logs that this thread reads. */
const growing = new GrowingBlocks();

/** A log that was archived whole may be executed: its monitor loses nothing when it replaces it, and nobody need read it. */
export const ARCHIVED_MODE = 0o700;

export type OnDamage = (file: string, error: unknown) => void;

/** An archived log's name: its number, then the times of its first, oldest and newest line. */
const ARCHIVED = /^(\d{8})\.(\d{19})\.(\d{19})\.(\d{19})\.zst$/;

export interface ArchivedName {
  name: string;
  number: number;
  first: string;
  min: string;
  max: string;
}

export function readArchivedName(name: string): ArchivedName | undefined {
  const [, number, first = "", min = "", max = ""] = ARCHIVED.exec(name) ?? [];
  return number === undefined ? undefined : { name, number: Number(number), first, min, max };
}

export const archivedName = ({ number, first, min, max }: Omit<ArchivedName, "name">): string =>
  `${String(number).padStart(8, "0")}.${first}.${min}.${max}.zst`;

/** The archived logs in a folder, oldest first. */
export async function archivedIn(folder: string): Promise<ArchivedName[]> {
  const names = await readdir(folder).catch(absent);
  return (names ?? []).flatMap((name) => readArchivedName(name) ?? []).sort((a, b) => a.number - b.number);
}

export class LogFiles {
  readonly all: readonly LogFile[];
  readonly #onDamage: OnDamage;

  private constructor(all: readonly LogFile[], onDamage: OnDamage) {
    this.all = all;
    this.#onDamage = onDamage;
  }

  /** Files are opened from the newest to the oldest: one that is renamed or archived meanwhile is found again, once. */
  static async open({ logs, log }: { logs: string; log: string }, onDamage: OnDamage): Promise<LogFiles> {
    const found = [await openRaw(log), await openRaw(`${log}.1`)].filter((file) => file !== undefined);
    const all = await archivedIn(logs);
    const isArchived = ({ first, raw }: LogFile): boolean =>
      raw?.has_mark === true && all.some((file) => file.first === first);
    const raw = found.filter(
      (file, at) => !isArchived(file) && found.findIndex(({ first }) => first === file.first) === at,
    );
    for (const file of found) if (!raw.includes(file)) await file.raw?.handle.close();
    const archived = all.filter(({ first }) => raw.every((file) => file.first !== first));
    const older = archived.map(({ name, first, min, max }) => ({ path: join(logs, name), first, min, max }));
    return new LogFiles([...older, ...raw.reverse()], onDamage);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { raw } of this.all) await raw?.handle.close();
  }

  /** The blocks of a file that may contain texts with these grams; none when it is damaged, or deleted meanwhile. */
  async blocks({ raw, ...file }: LogFile, grams: readonly number[] = []): Promise<Block[]> {
    if (!raw) return (await this.#inside(file, (handle) => blocksWith(handle, grams))) ?? [];
    const read = (at: number): Promise<Buffer> => readAt(raw.handle, at, raw.size - at);
    return await growing.blocks({ key: `${dirname(file.path)} ${file.first}`, size: raw.size, read });
  }

  /** A block's bytes; none when it is damaged. */
  async read(file: LogFile, block: Block): Promise<Buffer> {
    if (file.raw) return await readAt(file.raw.handle, block.from, block.length);
    return (await this.#inside(file, (handle) => readBlock(handle, block as ArchivedBlock))) ?? Buffer.alloc(0);
  }

  async #inside<T>({ path }: LogFile, work: (handle: FileHandle) => Promise<T>): Promise<T | undefined> {
    await using handle = await open(path).catch(absent);
    if (!handle) return undefined;
    try {
      return await work(handle);
    } catch (error) {
      if (!(error instanceof DamagedLog)) throw error;
      this.#onDamage(path, error);
      return undefined;
    }
  }
}

/** How far to look for a line at the beginning and at the end of a file: more than the longest one. */
const EDGE_BYTES = 32 * 1024;

async function openRaw(path: string): Promise<LogFile | undefined> {
  const handle = await open(path).catch(absent);
  if (!handle) return undefined;
  const { size, mode } = await handle.stat();
  const first = await firstStamp(handle);
  if (first === undefined) {
    await handle.close();
    return undefined;
  }
  const end = Math.max(0, size - EDGE_BYTES);
  const last = [...stamps(await readAt(handle, end, size - end))].at(-1) ?? first;
  const [min, max] = first < last ? [first, last] : [last, first];
  return {
    path,
    first: nanosOf(first),
    min: nanosOf(min),
    max: nanosOf(max),
    raw: { handle, size, has_mark: (mode & ARCHIVED_MODE) === ARCHIVED_MODE },
  };
}

async function firstStamp(handle: FileHandle): Promise<string | undefined> {
  return stamps(await readAt(handle, 0, EDGE_BYTES)).next().value;
}

/** What identifies a file that is not archived; none when it has no line yet. */
export async function firstOf(handle: FileHandle): Promise<string | undefined> {
  const first = await firstStamp(handle);
  return first === undefined ? undefined : nanosOf(first);
}

/** The times of complete lines that begin here, or after the first line end. */
function* stamps(bytes: Buffer): Generator<string, undefined> {
  for (let at = 0, end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
    const stamp = stampAt(bytes, at);
    at = end + 1;
    if (stamp !== undefined) yield stamp;
  }
}

export async function readAt(handle: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, at);
  return bytes.subarray(0, bytesRead);
}

export function absent(thrown: unknown): undefined {
  if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
}
