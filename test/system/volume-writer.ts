/**
 * A program that keeps data in a folder the way a database does: numbered records with a checksum, appended to a
 * log and synced, and a table of pages that are overwritten in place after the log says so. Prints each number
 * when it is durable.
 */
import { createHash } from "node:crypto";
import { closeSync, fdatasyncSync, fsyncSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const RECORD = 4096;
const PAGES = 64;

function record(n: number): Buffer {
  const bytes = Buffer.alloc(RECORD);
  bytes.writeUInt32LE(n, 0);
  for (let at = 4; at < RECORD - 32; at += 4) bytes.writeUInt32LE((n * 2654435761 + at) >>> 0, at);
  createHash("sha256")
    .update(bytes.subarray(0, RECORD - 32))
    .digest()
    .copy(bytes, RECORD - 32);
  return bytes;
}

function write(dir: string): void {
  const log = openSync(join(dir, "log"), "a");
  const table = openSync(join(dir, "table"), "w+");
  const folder = openSync(dir, "r");
  fsyncSync(folder);
  for (let n = 1; ; n++) {
    writeSync(log, record(n));
    fdatasyncSync(log);
    writeSync(table, record(n), 0, RECORD, (n % PAGES) * RECORD);
    if (n % 8 === 0) fdatasyncSync(table);
    process.stdout.write(`${n}\n`);
  }
}

/** How many records there are; throws when one is not what it must be, or the table knows one that the log does not. */
export function checkRecords(dir: string): number {
  const log = readFileSync(join(dir, "log"));
  const count = Math.floor(log.length / RECORD);
  for (let n = 1; n <= count; n++) {
    if (!log.subarray((n - 1) * RECORD, n * RECORD).equals(record(n))) throw new Error(`record ${n} is damaged`);
  }
  const table = openSync(join(dir, "table"), "r");
  try {
    const page = Buffer.alloc(RECORD);
    for (let at = 0; at < PAGES; at++) {
      if (readSync(table, page, 0, RECORD, at * RECORD) < RECORD) continue;
      const n = page.readUInt32LE(0);
      if (n === 0) continue;
      if (n > count) throw new Error(`the table has record ${n}, the log ends with ${count}`);
      if (!page.equals(record(n))) throw new Error(`the page of record ${n} is damaged`);
    }
  } finally {
    closeSync(table);
  }
  return count;
}

if (import.meta.main) write(process.argv[2] ?? "");
