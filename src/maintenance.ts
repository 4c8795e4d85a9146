/** What is done to a data dir without the rest of the platform: backup, restore, and ending the machines. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import { count } from "#core/words.ts";
import { runcMissing } from "#drivers/choice.ts";
import { BACKUP_FILES, BackupError, backup, restore } from "#stores/backup.ts";
import { claimDataDir, writeFileDurably } from "#stores/data-dir.ts";
import { migrate } from "#stores/migrations.ts";
import { openDatabase } from "#stores/open.ts";

export async function runBackup(settings: Settings, file: string): Promise<string> {
  const { data_dir } = settings;
  if (!settings.database_url && !existsSync(join(data_dir, "hangar.db")))
    throw new BackupError(`there is no database in ${data_dir}`);
  if (existsSync(file)) throw new BackupError(`${file} exists already; a backup never overwrites`);
  const database = await openDatabase(settings);
  try {
    await migrate(database);
    const present = BACKUP_FILES.filter((name) => existsSync(join(data_dir, name)));
    const files = Object.fromEntries(present.map((name) => [name, readFileSync(join(data_dir, name), "utf8")]));
    const rows = await backup(database, file, files, systemClock.now());
    const inside = present.length > 0 ? ` and ${present.join(", ")}` : "";
    return `Backed up ${count(rows, "row")}${inside} to ${file}. It holds secrets: keep it as safe as the data dir.`;
  } finally {
    await database.close();
  }
}

export async function runRestore(settings: Settings, file: string): Promise<string> {
  if (!existsSync(file)) throw new BackupError(`there is no file ${file}`);
  const dir = claimDataDir(settings.data_dir);
  try {
    const database = await openDatabase(settings);
    try {
      const { header, rows } = await restore(database, file, (files) => {
        for (const name of BACKUP_FILES) {
          const content = files[name];
          if (content !== undefined) writeFileDurably(dir.file(name), content);
        }
      });
      return `Restored ${count(rows, "row")} of ${header.created_at} into ${settings.data_dir}.`;
    } finally {
      await database.close();
    }
  } finally {
    dir.release();
  }
}

/** Ends every machine; the platform itself must have stopped before, and the lock on the data dir makes sure of it. */
export async function runDown({ data_dir }: Settings): Promise<string> {
  if (!existsSync(join(data_dir, "node_id"))) return `There is no platform in ${data_dir}.`;
  const dir = claimDataDir(data_dir);
  // The clock holds no process open, and here nothing else does.
  const awake = setInterval(() => {}, 1000);
  try {
    const missing = runcMissing();
    if (missing) return `No machine can be running here, because ${missing}.`;
    const { takeDown } = await import("#drivers/runtime/runc/down.ts");
    const machines = await takeDown({ data_dir: dir.path, node_id: dir.node_id, clock: systemClock, log: silentLog });
    return `Ended ${count(machines, "machine")}; nothing of them is left in the kernel. Their disks stay in ${data_dir}.`;
  } finally {
    clearInterval(awake);
    dir.release();
  }
}
