/** POST /import: an uploaded file becomes a database of the cluster, written through SQLite like any other change. */
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "#core/assert.ts";
import { fail } from "#core/errors.ts";
import { syncDirectory } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Position } from "../position.ts";
import { isDatabaseName } from "./database-name.ts";
import type { ReplicationNode } from "./node.ts";
import type { ProblemState } from "./problems.ts";

/** More pages than a database can have: one step, so one transaction. */
const ALL_PAGES = 2 ** 31 - 1;
/** Timeout for capturing the import. */
const CAPTURE_MS = 10_000;
const RETRY_MS = 20;
const HEALED_BY_IMPORT: ReadonlySet<ProblemState> = new Set(["damaged", "missing", "kept"]);
/** Files being received, to refuse concurrent uploads. */
const receiving = new Set<string>();

/** `body_sha256`: the expected digest, for signed requests. */
export async function importDatabase(
  node: ReplicationNode,
  name: string,
  body: Readable,
  body_sha256: string | undefined,
): Promise<Position> {
  if (node.role.kind !== "primary") fail("conflict", "databases are imported on the primary");
  if (!isDatabaseName(name)) fail("invalid_name", `${name} cannot be the name of a database`);
  const incoming = join(node.dir, ".replication", `${name}.import`);
  if (receiving.has(incoming)) fail("conflict", `${name} is being imported already; try again when that is done`);
  receiving.add(incoming);
  try {
    const found = await receive(body, incoming);
    if (body_sha256 !== undefined && found !== body_sha256) {
      fail("unauthorized", "the body does not match its signed digest; nothing was changed");
    }
    const before = node.directory.get(name)?.position.txid ?? 0;
    await install(node, name, incoming);
    return await captured(node, name, before);
  } finally {
    for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(`${incoming}${end}`, { force: true });
    receiving.delete(incoming);
  }
}

/** Writes the body to a file and returns its digest. */
async function receive(body: Readable, path: string): Promise<string> {
  const hash = createHash("sha256");
  const summed = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      hash.update(bytes);
      done(null, bytes);
    },
  });
  await pipeline(body, summed, createWriteStream(path, { mode: 0o600, flush: true }));
  return hash.digest("hex");
}

async function install(node: ReplicationNode, name: string, incoming: string): Promise<void> {
  const path = join(node.dir, name);
  refuseUnusable(node, name);
  const source = openGood(incoming);
  try {
    if (node.directory.get(name) && existsSync(path) && samePageSize(source, node, name)) {
      // Copies over the old one in one transaction: readers see the old or the new, replicas get the changed pages.
      await copyOver(node, source, name);
      return;
    }
    source.exec("PRAGMA journal_mode = WAL");
  } finally {
    source.close();
  }
  if (node.directory.problems.get(name)?.state === "damaged") node.directory.makeRoom(name);
  renameSync(incoming, path);
  // The file is the database's first transaction, so it must be durable.
  syncDirectory(node.dir);
}

/** An import repairs a damaged or missing database; any other database that is not open may be intact, and in use. */
function refuseUnusable({ directory }: ReplicationNode, name: string): void {
  const problem = directory.get(name) ? undefined : directory.problems.get(name);
  if (!problem || HEALED_BY_IMPORT.has(problem.state)) return;
  fail("conflict", `${name} is ${problem.state}: ${problem.reason}; nothing was changed`);
}

/** `backup` does not wait for locks, and says "not an error" of a busy database. */
async function copyOver(node: ReplicationNode, source: DatabaseSync, name: string): Promise<void> {
  const until_ms = node.clock.monotonic() + REPLICATION_LIMITS.import_locked_ms;
  for (;;) {
    try {
      await backup(source, join(node.dir, name), { rate: ALL_PAGES });
      return;
    } catch (error) {
      if (!node.closing && node.clock.monotonic() < until_ms) await node.clock.sleep(RETRY_MS);
      else refuseCopy(node, name, error);
    }
  }
}

function refuseCopy({ directory }: ReplicationNode, name: string, error: unknown): never {
  const free = directory.get(name)?.whileStill(() => undefined);
  if (free === true) fail("storage_failed", `${name} could not be written: ${messageOf(error)}; is the disk full?`);
  fail("conflict", `an application holds the write lock of ${name}; end that transaction; nothing was changed`);
}

/** SQLite cannot change the page size of a database in use: such a file is renamed over it. */
function samePageSize(source: DatabaseSync, node: ReplicationNode, name: string): boolean {
  const page_size = node.directory.get(name)?.page_size;
  return page_size === undefined || source.prepare("PRAGMA page_size").get()?.["page_size"] === page_size;
}

function openGood(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path);
    const verdict = db.prepare("PRAGMA quick_check").get()?.["quick_check"];
    if (verdict !== "ok") throw new Error(String(verdict));
    return db;
  } catch (error) {
    db?.close();
    return fail("invalid_request", `the body is not a whole SQLite database: ${messageOf(error)}`);
  }
}

async function captured(node: ReplicationNode, name: string, before: number): Promise<Position> {
  const until_ms = node.clock.monotonic() + CAPTURE_MS;
  while (node.clock.monotonic() < until_ms && !node.closing) {
    const position = node.directory.get(name)?.position;
    if (position && position.txid > before) return position;
    await node.clock.sleep(5);
  }
  return fail(
    "storage_failed",
    `${name} was imported but could not be opened: ${node.directory.problems.get(name)?.reason ?? ""}`,
  );
}
