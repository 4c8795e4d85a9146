/** Deletes archived logs: those past their age, and the oldest of organizations that have more than their budget. */
import { appendFile, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { KeptLogs } from "#core/log-settings.ts";
import { readIndex } from "./archived.ts";
import { absent, archivedIn } from "./files.ts";

/** In a machine's log folder: its organization. */
export const OWNER = "owner";
/** Deletes a little more than it must, so that it need not be done for each file. */
const TO = 0.95;

/** In a machine's log folder: what was deleted of it, so that a reader that comes too late knows how much it missed. */
const DELETED = "deleted";
/** Deleted logs that are remembered, and where older ones are forgotten. */
const REMEMBERED = 1000;
const DELETED_BYTES = 4 * REMEMBERED * 32;

interface ArchivedLog {
  folder: string;
  path: string;
  first: string;
  size: number;
  max: string;
}

/** Archived logs that were deleted, each with the bytes of its text. */
export async function deletedIn(folder: string): Promise<{ first: string; bytes: number }[]> {
  const text = (await readFile(join(folder, DELETED), "utf8").catch(absent)) ?? "";
  const found = [...text.matchAll(/^(\d{19}) (\d+)$/gm)].map(([, first = "", bytes]): [string, number] => [
    first,
    Number(bytes),
  ]);
  // A kill before the deletion leaves one twice.
  return [...new Map(found)].map(([first, bytes]) => ({ first, bytes }));
}

/** Deletes an archived log, after its size was recorded. */
async function remove({ folder, path, first }: ArchivedLog): Promise<void> {
  const file = join(folder, DELETED);
  await appendFile(file, `${first} ${await textBytes(path)}\n`, { mode: 0o600 }).catch(absent);
  await rm(path, { force: true });
  if (((await stat(file).catch(absent))?.size ?? 0) < DELETED_BYTES) return;
  const kept = (await deletedIn(folder)).slice(-REMEMBERED);
  await writeFile(file, kept.map(({ first, bytes }) => `${first} ${bytes}\n`).join(""), { mode: 0o600 });
}

/** 0 when it cannot be read. */
async function textBytes(path: string): Promise<number> {
  await using handle = await open(path).catch(() => undefined);
  const last = handle && (await readIndex(handle).catch(() => [])).at(-1);
  return last ? last.from + last.length : 0;
}

export async function ownerOf(folder: string): Promise<string> {
  return (await readFile(join(folder, OWNER), "utf8").catch(absent)) ?? "";
}

/** Bytes of each organization's archived logs on this host. */
export class LogBudget {
  readonly #folder: string;
  readonly #kept: KeptLogs;
  readonly #bytes = new Map<string, number>();

  constructor(folder: string, kept: KeptLogs) {
    this.#folder = folder;
    this.#kept = kept;
  }

  /** Counts a new archived log; true when there is too much now. */
  add(org_id: string, bytes: number): boolean {
    const own = (this.#bytes.get(org_id) ?? 0) + bytes;
    this.#bytes.set(org_id, own);
    return own > this.#kept.org_bytes || sum(this.#bytes.values()) > this.#kept.host_bytes;
  }

  /** Counts anew and deletes what is too much; returns the deleted bytes. */
  async sweep(now: number): Promise<number> {
    const orgs = await this.#read();
    const before = `${now - this.#kept.ms}000000`;
    let gone = 0;
    const drop = async (logs: ArchivedLog[]): Promise<void> => {
      const log = logs.shift();
      if (log) await remove(log);
      gone += log?.size ?? 0;
    };
    for (const logs of orgs.values()) {
      while (logs[0] !== undefined && logs[0].max < before) await drop(logs);
      if (bytesOf(logs) <= this.#kept.org_bytes) continue;
      while (bytesOf(logs) > this.#kept.org_bytes * TO) await drop(logs);
    }
    const total = (): number => sum([...orgs.values()].map(bytesOf));
    if (total() > this.#kept.host_bytes) {
      // Whoever has the most gives first: an organization's flood does not delete the logs of others.
      while (total() > this.#kept.host_bytes * TO) await drop(largest([...orgs.values()]));
    }
    this.#bytes.clear();
    for (const [org_id, logs] of orgs) this.#bytes.set(org_id, bytesOf(logs));
    return gone;
  }

  /** All archived logs by organization, the oldest first. */
  async #read(): Promise<Map<string, ArchivedLog[]>> {
    const orgs = new Map<string, ArchivedLog[]>();
    for (const id of await readdir(this.#folder)) {
      const folder = join(this.#folder, id);
      const found = await archivedIn(folder).catch(() => []);
      if (found.length === 0) continue;
      const owner = await ownerOf(folder);
      const logs = orgs.get(owner) ?? [];
      orgs.set(owner, logs);
      for (const { name, first, max } of found) {
        const path = join(folder, name);
        const size = (await stat(path).catch(absent))?.size ?? 0;
        logs.push({ folder, path, first, size, max });
      }
    }
    for (const logs of orgs.values()) logs.sort((a, b) => (a.max < b.max ? -1 : 1));
    return orgs;
  }
}

const sum = (all: Iterable<number>): number => [...all].reduce((total, each) => total + each, 0);
const bytesOf = (logs: readonly ArchivedLog[]): number => sum(logs.map(({ size }) => size));
const largest = (all: ArchivedLog[][]): ArchivedLog[] =>
  all.reduce((most, each) => (bytesOf(each) > bytesOf(most) ? each : most), []);
