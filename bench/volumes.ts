/**
 * Volumes on real storage: how long a machine is held for a snapshot, how fast snapshots are stored and restored,
 * what a second one costs after 1 % has changed, and how a fork's time goes with the size; next to `cp`, `rsync`
 * and `restic`, which back up the same image files.
 */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { readManifest, restoreImage } from "#volumes/backup/restore-image.ts";
import { storeImage } from "#volumes/backup/store-image.ts";
import type { DiskVolume } from "#volumes/disk.ts";
import { installed } from "./processes.ts";
import { median, type Report } from "./report.ts";

const MIB = 1024 ** 2;
/** What is in the volume that is backed up. */
const DATA_MIB = Number(process.env["BENCH_VOLUME_MIB"] ?? 512);
const never = new AbortController().signal;
const plain = (id: string, size_gb: number): DiskVolume => ({
  id,
  size_gb,
  fstype: "ext4",
  encryption: null,
  key: null,
});

export async function run(report: Report): Promise<void> {
  if (process.getuid?.() !== 0) {
    report.skip("volumes", "mounting needs root");
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-volumes-"));
  const disk = new LoopDisk({ dir: join(dir, "volumes") });
  try {
    await disk.start();
    await forks(report, disk);
    await backups(report, disk, dir);
  } finally {
    for (const id of (await disk.inventory()).volumes.keys()) await disk.remove(id);
    await disk.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The same data in volumes of growing size, each forked while it is mounted. */
async function forks(report: Report, disk: LoopDisk): Promise<void> {
  const { reflink, reflink_reason } = await disk.capabilities();
  report.section(`fork of a mounted volume with 64 MiB in it${reflink ? "" : ` (copies: ${reflink_reason})`}`);
  let smallest = Number.POSITIVE_INFINITY;
  for (const size_gb of [1, 4, 16]) {
    const volume = plain(`vol_${size_gb}`, size_gb);
    await disk.create(volume);
    writeNoise(join((await disk.mount(volume)).dir, "data"), 64);
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const fork = plain(`vol_fork_${size_gb}_${i}`, size_gb);
      times.push(await timed(() => disk.fork(volume, fork)));
      await disk.remove(fork.id);
    }
    const what = `fork, ${size_gb} GB`;
    const value = median(times);
    // With shared blocks the size does not matter; a loaded box is given some slack.
    const flat = size_gb === 1 ? {} : { to: "fork, 1 GB", ...(reflink ? { at_most: Math.ceil(3 * smallest) } : {}) };
    report.add({ what, value, unit: "ms", ...flat });
    smallest = Math.min(smallest, value);
    await disk.unmount(volume);
    await disk.remove(volume.id);
  }
}

async function backups(report: Report, disk: LoopDisk, dir: string): Promise<void> {
  const volume = plain("vol_data", Math.max(2, Math.ceil((2 * DATA_MIB) / 1024)));
  await disk.create(volume);
  const { dir: inside } = await disk.mount(volume);
  const file = join(inside, "data");
  writeNoise(file, DATA_MIB);
  const objects = new LocalObjects(join(dir, "objects"));
  const copies = join(dir, "points");
  mkdirSync(copies);

  report.section(`freezing, with ${DATA_MIB} MiB in the volume and a program that writes`);
  const writer = spawn("sh", [
    "-c",
    'while :; do dd if=/dev/urandom of="$1" bs=64k count=16 conv=fsync 2>/dev/null; done',
    "sh",
    join(inside, "busy"),
  ]);
  const frozen: number[] = [];
  for (let i = 0; i < 7; i++) {
    frozen.push((await disk.takePoint(volume, `vs_freeze_${i}`)).frozen_ms);
    await disk.dropPoint(`vs_freeze_${i}`);
  }
  writer.kill("SIGKILL");
  await once(writer, "exit");
  rmSync(join(inside, "busy"));
  report.add({ what: "held for a snapshot, median", value: median(frozen), unit: "ms" });
  report.add({ what: "held for a snapshot, longest", value: Math.max(...frozen), unit: "ms" });

  await disk.takePoint(volume, "vs_1");
  onePercent(file);
  await disk.takePoint(volume, "vs_2");
  await disk.unmount(volume);
  const image = (id: string): string => join(poolOf(dir), "points", `${id}.img`);

  report.section(`first backup of ${DATA_MIB} MiB of noise`);
  peers(report, dir, image("vs_1"), "first");
  const first = await store(disk, objects, "vs_1");
  report.add({
    what: "hangar",
    value: DATA_MIB / (first.ms / 1000),
    unit: "MiB/s",
    note: `${mib(first.stored)} stored`,
  });

  report.section("second backup, after 1 % of the pages changed here and there");
  peers(report, dir, image("vs_2"), "second");
  const second = await store(disk, objects, "vs_2", "vs_1");
  report.add({ what: "hangar", value: DATA_MIB / (second.ms / 1000), unit: "MiB/s" });
  report.add({ what: "hangar, stored", value: second.stored / MIB, unit: "MiB" });

  report.section("restore of the second backup");
  restorePeers(report, dir);
  const manifest = await readManifest(objects, "vs_2");
  const ms = await timed(() =>
    disk.fill(plain("vol_back", volume.size_gb), (target) =>
      restoreImage({ manifest, objects, image: target, signal: never, onProgress: () => {} }),
    ),
  );
  const same = spawnSync("cmp", [image("vs_2"), join(poolOf(dir), "volumes/vol_back.img")]).status === 0;
  report.add({
    what: "hangar",
    value: DATA_MIB / (ms / 1000),
    unit: "MiB/s",
    note: same ? "byte for byte" : "DIFFERENT",
  });
}

async function store(disk: LoopDisk, objects: LocalObjects, id: string, base_id?: string) {
  await using image = await disk.openPoint(id);
  const base = base_id === undefined ? undefined : await readManifest(objects, base_id);
  let stored = 0;
  const ms = await timed(async () => {
    const job = { snapshot_id: id, image, objects, base, compress: true, signal: never, onProgress: () => {} };
    ({ stored } = await storeImage(job));
  });
  return { ms, stored };
}

/** Each keeps the image in its own way; `restic` keeps both, the other two only the newest. */
function peers(report: Report, dir: string, image: string, round: "first" | "second"): void {
  const env = { ...process.env, RESTIC_PASSWORD: "bench", RESTIC_CACHE_DIR: join(dir, "cache") };
  const repo = join(dir, "restic");
  const staged = join(dir, "image");
  // The same path both times: that is how restic finds the backup before.
  spawnSync("cp", ["--sparse=always", image, staged]);
  const before = { cp: 0, rsync: taken(join(dir, "rsync")), restic: taken(repo) };
  const measure = (name: string, command: string, args: string[], folder: string, kept: number): void => {
    if (!installed(command)) {
      report.skip(name, `there is no ${command}`);
      return;
    }
    const started = performance.now();
    const { status, stderr } = spawnSync(command, args, { env, encoding: "utf8" });
    spawnSync("sync", ["-f", dir]);
    const seconds = (performance.now() - started) / 1000;
    if (status !== 0) {
      report.skip(name, stderr.trim().split("\n").at(-1) ?? "it failed");
      return;
    }
    report.add({ what: name, value: DATA_MIB / seconds, unit: "MiB/s" });
    if (round === "first") return;
    const note = name === "restic" ? {} : { note: "only the newest is kept" };
    report.add({ what: `${name}, stored`, value: (taken(folder) - kept) / MIB, unit: "MiB", ...note });
  };
  for (const folder of ["cp", "rsync"]) mkdirSync(join(dir, folder), { recursive: true });
  rmSync(join(dir, "cp/image"), { force: true });
  measure("cp --sparse", "cp", ["--sparse=always", staged, join(dir, "cp/image")], join(dir, "cp"), before.cp);
  const delta = round === "first" ? ["--sparse"] : ["--inplace", "--no-whole-file"];
  measure(
    "rsync",
    "rsync",
    ["-a", "--ignore-times", ...delta, staged, join(dir, "rsync/")],
    join(dir, "rsync"),
    before.rsync,
  );
  if (round === "first") spawnSync("restic", ["-r", repo, "init"], { env });
  measure("restic", "restic", ["-r", repo, "backup", "--quiet", staged], repo, before.restic);
}

function restorePeers(report: Report, dir: string): void {
  const env = { ...process.env, RESTIC_PASSWORD: "bench", RESTIC_CACHE_DIR: join(dir, "cache") };
  const target = join(dir, "back");
  const measure = (what: string, command: string, args: string[]): void => {
    if (!installed(command)) {
      report.skip(what, `there is no ${command}`);
      return;
    }
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target);
    const started = performance.now();
    spawnSync(command, args, { env });
    spawnSync("sync", ["-f", dir]);
    report.add({ what, value: DATA_MIB / ((performance.now() - started) / 1000), unit: "MiB/s" });
  };
  measure("cp --sparse", "cp", ["--sparse=always", join(dir, "cp/image"), target]);
  measure("rsync", "rsync", ["-a", "--sparse", join(dir, "rsync/image"), target]);
  measure("restic", "restic", ["-r", join(dir, "restic"), "restore", "latest", "--quiet", "--target", target]);
  rmSync(target, { recursive: true, force: true });
}

const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;

function poolOf(dir: string): string {
  const pool = join(dir, "volumes/pool/images");
  return statSync(pool, { throwIfNoEntry: false }) ? pool : join(dir, "volumes/images");
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Noise does not compress, as what people keep mostly does not either. */
function writeNoise(file: string, mebibytes: number): void {
  const fd = openSync(file, "w");
  for (let i = 0; i < mebibytes; i++) writeSync(fd, randomBytes(MIB));
  fsyncSync(fd);
  closeSync(fd);
}

/** One page of a hundred, spread evenly: the worst case for whoever keeps larger pieces. */
function onePercent(file: string): void {
  const fd = openSync(file, "r+");
  const pages = (DATA_MIB * MIB) / 4096;
  for (let page = 0; page < pages; page += 100) writeSync(fd, randomBytes(4096), 0, 4096, page * 4096);
  fsyncSync(fd);
  closeSync(fd);
}

/** What a folder takes on the disk. */
function taken(dir: string): number {
  if (!statSync(dir, { throwIfNoEntry: false })) return 0;
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).blocks * 512, 0);
}
