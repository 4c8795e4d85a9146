/** What is done to a data dir without the rest of the platform: backup, restore, and ending the machines. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import type { DownReport, KernelInventory } from "#core/kernel-objects.ts";
import { silentLog } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import { count } from "#core/words.ts";
import { runcMissing } from "#drivers/choice.ts";
import { BACKUP_FILES, BackupError, backup, restore } from "#stores/backup.ts";
import { claimDataDir, holderOf, writeFileDurably } from "#stores/data-dir.ts";
import { migrate } from "#stores/migrate.ts";
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

/** Checks the whole database, whether or not the platform runs, without changes. */
export async function runCheck(settings: Settings): Promise<{ problem?: string }> {
  const file = join(settings.data_dir, "hangar.db");
  if (settings.database_url) return {};
  const { DatabaseCheck } = await import("#stores/sqlite/check.ts");
  const check = new DatabaseCheck(file);
  try {
    await check.whole();
    return {};
  } catch (thrown) {
    return { problem: messageOf(thrown) };
  } finally {
    await check.close();
  }
}

/**
 * Ends every machine, closes every volume, and lists what is left in the kernel. The lock on the data dir ensures that
 * the platform is stopped.
 */
export async function runDown({ data_dir }: Settings): Promise<DownReport> {
  const nothing = { machines: 0, volumes: 0, objects: [], unseen: [], problems: [], data_dir };
  if (!existsSync(join(data_dir, "node_id"))) return nothing;
  const dir = claimDataDir(data_dir);
  // Keeps the process alive, because the clock does not.
  const awake = setInterval(() => {}, 1000);
  try {
    const missing = runcMissing();
    if (missing)
      return {
        ...nothing,
        ...(await runInventory({ data_dir })),
        problems: [`no machine can be ended here: ${missing}`],
      };
    const { takeDownInstallation } = await import("#drivers/down.ts");
    const of = { data_dir: dir.path, node_id: dir.node_id, clock: systemClock, log: silentLog };
    return { ...(await takeDownInstallation(of)), data_dir };
  } finally {
    clearInterval(awake);
    dir.release();
  }
}

/** Lists the installation's kernel objects, and foreign processes that hold them. */
export async function runInventory({ data_dir }: Pick<Settings, "data_dir">): Promise<KernelInventory> {
  const file = join(data_dir, "node_id");
  if (process.platform !== "linux" || !existsSync(file)) return { objects: [], unseen: [] };
  const { kernelInventory } = await import("#drivers/inventory/inventory.ts");
  const installation = { data_dir, node_id: readFileSync(file, "utf8").trim() };
  const { objects, unseen } = await kernelInventory(installation, { platform_pid: holderOf(data_dir) });
  return { objects, unseen };
}
