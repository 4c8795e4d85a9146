/** Real volumes for tests: what the box must have for them, a harness with the volumes module, and what is left of them. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { anApp } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import { systemClock } from "#core/clock.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import { silentLog } from "#core/log.ts";
import type { ObjectStore } from "#core/objects.ts";
import { Sealer } from "#core/sealer.ts";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { hasDeviceMapper } from "#drivers/disk/probe.ts";
import { declaredHosts, HostService } from "#hosts/service.ts";
import { migrate } from "#stores/migrate.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import type { CreateVolumeInput } from "#volumes/inputs.ts";
import { VolumeModule } from "#volumes/module.ts";
import type { Snapshot, Volume } from "#volumes/types.ts";
import { tempDir, until } from "./support.ts";
import { mountsMissing } from "./system/own-mounts.ts";

/** Why there can be no real volumes here, or undefined. */
export function volumesMissing(): string | undefined {
  if (spawnSync("perl", ["-v"]).status !== 0) return "there is no perl (apt-get install perl-base)";
  return mountsMissing();
}

/** Why this way to encrypt cannot be tried here, or undefined. */
export function encryptionMissing(method: "dm-crypt" | "fscrypt" | "gocryptfs"): string | undefined {
  switch (method) {
    case "dm-crypt":
      return hasDeviceMapper() ? undefined : "the kernel has no device mapper";
    case "fscrypt":
      return existsSync("/sys/fs/ext4/features/encryption") ? undefined : "the kernel's ext4 cannot encrypt";
    case "gocryptfs":
      if (!existsSync("/dev/fuse")) return "the kernel has no FUSE";
      if (spawnSync("fusermount", ["-V"]).status !== 0) return "there is no fusermount";
      return spawnSync("gocryptfs", ["-version"]).status === 0 ? undefined : "there is no gocryptfs";
  }
}

export interface VolumeHarness {
  module: VolumeModule;
  dir: string;
  ids: Ids;
  create(wish: CreateVolumeInput): Promise<Volume>;
  /** The volume, once it is in no state that passes. */
  settled(id: string): Promise<Volume>;
  snapshot(volume_id: string): Promise<Snapshot>;
  close(): Promise<void>;
}

export const OWNER = { org_id: "o1", app_id: "a1", app_name: "web" };

/** The volumes module with real volumes and a database in memory; everything is removed when the test ends. */
export async function openVolumeHarness(
  t: Pick<TestContext, "after">,
  options: { pool?: "auto" | "plain"; objects?: ObjectStore } = {},
): Promise<VolumeHarness> {
  const dir = tempDir("hangar-volumes");
  const database = inlineSqlite();
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
  await sqlAppStore(database).insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
  const hosts = new HostService({ store: sqlHostStore(database), own: declaredHosts([]) });
  await hosts.start();
  const disk = new LoopDisk({ dir: join(dir, "volumes"), pool: options.pool ?? "auto" });
  const store = sqlVolumeStore(database);
  const module = new VolumeModule({
    store,
    hosts,
    disk,
    objects: options.objects ?? new LocalObjects(join(dir, "objects")),
    sealer: new Sealer(Buffer.alloc(32, 7)),
    clock: systemClock,
    log: silentLog,
    undelete_ms: 0,
  });
  await module.start();
  let open = true;
  const close = async (): Promise<void> => {
    if (!open) return;
    open = false;
    try {
      for (const id of (await disk.inventory()).volumes.keys()) await disk.remove(id);
    } finally {
      await module.close();
    }
  };
  t.after(close);
  const ids = randomIds(systemClock);
  return {
    module,
    dir,
    ids,
    close,
    create: (wish) => module.volumes.create(OWNER, { require_unique_zone: false, ...wish }, ids),
    async settled(id) {
      return await until(`volume ${id} rests`, async () => {
        const volume = await store.find(id);
        const passing = volume && ["creating", "restoring", "hydrating", "extending"].includes(volume.state);
        return passing ? undefined : volume;
      });
    },
    async snapshot(volume_id) {
      const { id } = await module.snapshots.create(volume_id, ids);
      const snapshot = await until(`snapshot ${id} is stored`, async () => {
        const found = await store.findSnapshot(id);
        return found?.status === "created" || found?.status === "failed" ? found : undefined;
      });
      if (snapshot.status === "failed") throw new Error(snapshot.message);
      await until("it is over", async () => (await store.findWork(volume_id))?.operations.length === 0);
      return snapshot;
    },
  };
}

/** What a box holds of volumes: loop devices with these files behind them, mounts and files below the folder. */
export function traces(dir: string): { loops: string[]; mounts: string[]; files: string[] } {
  const lines = (command: string, args: string[]): string[] =>
    spawnSync(command, args, { encoding: "utf8" })
      .stdout.split("\n")
      .filter((line) => line.includes(dir));
  return {
    loops: lines("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"]),
    mounts: lines("cat", ["/proc/self/mountinfo"]).map((line) => line.split(" ")[4] ?? ""),
    files: lines("find", [dir, "-type", "f"]),
  };
}
