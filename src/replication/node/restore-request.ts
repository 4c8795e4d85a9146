/** GET /backups and POST /restore: what the node's own backup has, and a database of it as one more transaction. */
import { createReadStream, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import { restorable } from "../backup/list.ts";
import { type Moment, momentIn } from "../backup/moment.ts";
import { RestoreError, restore } from "../backup/restore.ts";
import { formatPosition } from "../position.ts";
import { isDatabaseName } from "./database-name.ts";
import { importDatabase } from "./import.ts";
import type { ReplicationNode } from "./node.ts";

/** Folders in use, to refuse concurrent restores. */
const restoring = new Set<string>();

export async function ownBackups(backup: ObjectStore | undefined): Promise<object> {
  return { databases: await restorable(backup ?? noBackup()) };
}

export async function restoreOwn(
  node: ReplicationNode,
  backup: ObjectStore | undefined,
  query: URLSearchParams,
): Promise<object> {
  const store = backup ?? noBackup();
  const name = query.get("name") ?? "";
  if (!isDatabaseName(name)) fail("invalid_name", `${JSON.stringify(name)} cannot be the name of a database`);
  if (node.role.kind !== "primary") fail("conflict", "databases are restored on the primary");
  const folder = join(node.dir, ".replication", `${name}.restore`);
  if (restoring.has(folder)) fail("conflict", `${name} is being restored already; try again when that is done`);
  restoring.add(folder);
  try {
    // Another run may have been killed.
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    const to = join(folder, "restored");
    const { timestamp_ms } = await restored({ store, name, to, scratch: folder, ...readMoment(query) });
    const position = await importDatabase(node, name, createReadStream(to), undefined);
    return { name, position: formatPosition(position), written_at: isoTime(timestamp_ms) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
    restoring.delete(folder);
  }
}

const noBackup = (): never => fail("conflict", "this node has no backup: it was started without --backup");

function readMoment(query: URLSearchParams): Moment {
  try {
    return momentIn({ at: query.get("at") ?? undefined, txid: query.get("txid") ?? undefined });
  } catch (thrown) {
    return fail("invalid_request", messageOf(thrown));
  }
}

async function restored(options: Parameters<typeof restore>[0]): ReturnType<typeof restore> {
  try {
    return await restore(options);
  } catch (thrown) {
    if (thrown instanceof RestoreError) fail("not_found", thrown.message);
    throw thrown;
  }
}
