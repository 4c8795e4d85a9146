/** Closes every volume of an installation whose platform does not run: nothing stays mounted or unlocked. */
import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { blockDevicesOf } from "../inventory/block-devices.ts";
import { unmountSoon } from "./layers.ts";
import { mounts } from "./mountinfo.ts";
import { closePool } from "./pool.ts";
import { run } from "./programs.ts";

/**
 * What cannot be closed, because a process uses it, stays as it is, and goes with its last user; the next call takes
 * away the rest. Answers how many volumes were mounted.
 */
export async function takeDownVolumes(root: string): Promise<number> {
  const folder = `${join(root, "mnt")}/`;
  const probes = join(root, "probe-");
  const points = (await mounts()).map(({ point }) => point);
  const ours = points.filter((point) => point.startsWith(folder) || point.startsWith(probes));
  // The last one mounted goes first: what a program shows in the clear is above what it encrypts.
  for (const point of ours.toReversed()) {
    await unmountSoon(point).catch(() => {});
    await letGo(point);
  }
  for (const name of await readdir(folder).catch((): string[] => [])) await letGo(join(folder, name));
  const { mapped, loops } = await blockDevicesOf((file) => file.startsWith(`${root}/`));
  // Deferred: one that is in use is closed by its last user.
  for (const { of } of mapped) await run("cryptsetup", ["close", "--deferred", of]).catch(() => {});
  for (const { name } of loops) await run("losetup", ["--detach", `/dev/${name}`]).catch(() => {});
  await closePool(root);
  return new Set(ours.filter((point) => point.startsWith(folder)).map((point) => point.replace(/\.clear$/, ""))).size;
}

/** Removing a folder unmounts what is mounted there in every other mount namespace. */
const letGo = (point: string): Promise<void> => rmdir(point).catch(() => {});
