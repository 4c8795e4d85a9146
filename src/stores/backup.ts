import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline, Readable } from "node:stream";
import { pipeline as finished } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { messageOf } from "#core/assert.ts";
import { isoTime } from "#core/clock.ts";
import { VERSION } from "#core/version.ts";
import { type Database, readOne, type Step, type Value } from "./database.ts";
import { migrate } from "./migrate.ts";
import { MIGRATIONS, TABLES } from "./migrations.ts";

/**
 * A backup is a consistent snapshot of all rows as gzipped JSON lines: a header, the rows, and an end line with count
 * and hash. It is independent of the database: a SQLite backup can be restored to PostgreSQL.
 */
interface Header {
  hangar_backup: 1;
  version: string;
  migration: number;
  created_at: string;
  /** Files of the data dir that belong to the rows: master key and token. */
  files: Record<string, string>;
}

/** The backup cannot be read or restored here. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/** Files of a data dir that cannot be recreated. */
export const BACKUP_FILES = ["master.key", "token"] as const;

const ROWS_PER_WRITE = 200;
const RESTORING = "restoring";
const CURRENT = MIGRATIONS.at(-1)?.id ?? 0;

export async function backup(
  database: Database,
  file: string,
  files: Record<string, string>,
  now_ms: number,
): Promise<number> {
  const header: Header = { hangar_backup: 1, version: VERSION, migration: CURRENT, created_at: isoTime(now_ms), files };
  let rows = 0;
  const hash = createHash("sha256");
  async function* lines(): AsyncIterable<string> {
    yield `${JSON.stringify(header)}\n`;
    for await (const { table, row } of database.snapshot(TABLES)) {
      const line = `${JSON.stringify({ table, row: packed(row) })}\n`;
      hash.update(line);
      rows++;
      yield line;
    }
    yield `${JSON.stringify({ end: true, rows, sha256: hash.digest("hex") })}\n`;
  }
  await finished(
    Readable.from(lines()),
    createGzip(),
    createWriteStream(file, { mode: 0o600, flags: "wx", flush: true }),
  );
  return rows;
}

/**
 * Restores into an empty database. An interrupted restore starts over; until it is done the platform refuses to start
 * on it. `keepFiles` restores the data dir's files, before the end mark.
 */
export async function restore(
  database: Database,
  file: string,
  keepFiles: (files: Header["files"]) => void = () => {},
): Promise<{ header: Header; rows: number }> {
  const checked = await inspectBackup(file);
  await migrate(database);
  const unfinished = await isHalfRestored(database);
  const { n } = (await readOne<{ n: number }>(database, "SELECT count(*) AS n FROM orgs")) ?? { n: 0 };
  if (n > 0 && !unfinished)
    throw new BackupError("there is data here already; restore into an empty data dir or database");
  await database.write(
    [
      ...TABLES.toReversed().map((table): Step => ({ sql: `DELETE FROM ${table}` })),
      { sql: "INSERT INTO meta (key, value) VALUES (?, ?)", args: [RESTORING, file] },
    ],
    { patient: true },
  );
  let steps: Step[] = [];
  for await (const { table, row } of rowsOf(file)) {
    steps.push(insertStep(table, row));
    if (steps.length < ROWS_PER_WRITE) continue;
    await database.write(steps, { patient: true });
    steps = [];
  }
  keepFiles(checked.header.files);
  const end: Step = { sql: "DELETE FROM meta WHERE key = ?", args: [RESTORING], rows: 1 };
  await database.write([...steps, end], { patient: true });
  return checked;
}

export async function refuseHalfRestored(database: Database): Promise<void> {
  if (await isHalfRestored(database)) {
    throw new BackupError("a restore into this database was interrupted; run the same `hangar restore` again");
  }
}

async function isHalfRestored(database: Database): Promise<boolean> {
  return (await readOne(database, "SELECT 1 AS yes FROM meta WHERE key = ?", [RESTORING])) !== undefined;
}

/** Reads it completely before any change: complete, unmodified, of a known version. */
async function inspectBackup(file: string): Promise<{ header: Header; rows: number }> {
  const hash = createHash("sha256");
  let header: Header | undefined;
  let end: { rows: number; sha256: string } | undefined;
  let rows = 0;
  for await (const line of linesOf(file)) {
    const value = parseLine(line) as Header & { table?: string; end?: boolean; rows: number; sha256: string };
    if (!header) header = readHeader(value);
    else if (value.end) end = value;
    else {
      hash.update(`${line}\n`);
      rows++;
    }
  }
  if (!header) throw new BackupError(`${file} is empty`);
  if (!end) throw new BackupError(`${file} is cut off: its end line is missing`);
  if (end.rows !== rows || end.sha256 !== hash.digest("hex"))
    throw new BackupError(`${file} is damaged: its rows do not match their hash`);
  return { header, rows };
}

function parseLine(line: string): object {
  try {
    const value: unknown = JSON.parse(line);
    if (value !== null && typeof value === "object") return value;
  } catch {
    // Reported below: not a backup.
  }
  throw new BackupError("this is not a backup of hangar");
}

function readHeader(value: Header): Header {
  if (value.hangar_backup !== 1) throw new BackupError("this is not a backup of hangar");
  if (value.migration > CURRENT)
    throw new BackupError(`the backup is of a newer version (${value.version}); restore it with that one`);
  if (value.migration < CURRENT)
    throw new BackupError(`the backup is of version ${value.version}; restore it with that one, then upgrade`);
  return value;
}

async function* rowsOf(file: string): AsyncIterable<{ table: string; row: Record<string, Value> }> {
  for await (const line of linesOf(file)) {
    const value = JSON.parse(line) as { table?: string; row?: Record<string, unknown> };
    if (value.table && value.row) yield { table: value.table, row: unpacked(value.row) };
  }
}

async function* linesOf(file: string): AsyncIterable<string> {
  const text = pipeline(createReadStream(file), createGunzip(), () => {}).setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of text as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (cause) {
    throw new BackupError(`${file} cannot be read as a backup: ${messageOf(cause)}`, { cause });
  }
  if (rest !== "") throw new BackupError(`${file} is cut off in the middle of a line`);
}

const TABLE_NAMES: ReadonlySet<string> = new Set(TABLES);

function insertStep(table: string, row: Record<string, Value>): Step {
  const columns = Object.keys(row);
  // Names become part of the SQL, so only known ones are accepted.
  if (!TABLE_NAMES.has(table) || !columns.every((column) => /^[a-z_][a-z0-9_]*$/.test(column))) {
    throw new BackupError(`the backup names a table or column that does not exist: ${table}`);
  }
  const marks = columns.map(() => "?").join(", ");
  return { sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`, args: Object.values(row), rows: 1 };
}

function packed(row: Record<string, Value>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value,
    ]),
  );
}

function unpacked(row: Record<string, unknown>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value !== null && typeof value === "object"
        ? Buffer.from((value as { bytes: string }).bytes, "base64")
        : (value as Value),
    ]),
  );
}
