/** Closes every volume of an installation whose platform does not run: nothing stays mounted or unlocked. */
import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { blockDevicesOf } from "../inventory/block-devices.ts";
import { unmountSoon } from "./layers.ts";
import { mounts } from "./mountinfo.ts";
import { closePool } from "./pool.ts";
import { run } from "./programs.ts";

/**
 * Unmounts and closes all volumes. Those in use stay until their last user ends, and the next call removes the rest.
 * Returns how many were mounted.
 */
export async function takeDownVolumes(root: string): Promise<number> {
  const folder = `${join(root, "mnt")}/`;
  const probes = join(root, "probe-");
  const points = (await mounts()).map(({ point }) => point);
  const ours = points.filter((point) => point.startsWith(folder) || point.startsWith(probes));
  // In reverse order: the decrypted view is mounted over the encrypted one.
  for (const point of ours.toReversed()) {
    await unmountSoon(point).catch(() => {});
    await removeEmpty(point);
  }
  for (const name of await readdir(folder).catch((): string[] => [])) await removeEmpty(join(folder, name));
  const { mapped, loops } = await blockDevicesOf((file) => file.startsWith(`${root}/`));
  // Deferred: a device in use is closed by its last user.
  for (const { of } of mapped) await run("cryptsetup", ["close", "--deferred", of]).catch(() => {});
  for (const { name } of loops) await run("losetup", ["--detach", `/dev/${name}`]).catch(() => {});
  await closePool(root);
  return new Set(ours.filter((point) => point.startsWith(folder)).map((point) => point.replace(/\.clear$/, ""))).size;
}

/** Removing a directory also unmounts it in every other mount namespace. */
const removeEmpty = (point: string): Promise<void> => rmdir(point).catch(() => {});
