/**
 * Image layers on a file system without idmapped mounts (an overlay under the data dir, some network file systems). The
 * machine gets its own copy with shifted owners, which takes time at its first start and disk space as long as it
 * exists; separate user ids are worth more than both.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { lchown, lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { bind, CallError } from "../../../linux/calls.ts";
import { program } from "../../../linux/program.ts";
import { BLOCK } from "../uid-blocks.ts";

/** Mounts a layer with mapped owners; `userns` has the map. Copies are stored in `copies`. */
export async function showLayer(
  layer: string,
  at: string,
  { userns, uid_base, copies }: { userns: number; uid_base: number; copies: string },
): Promise<void> {
  try {
    bind(layer, at, { userns });
  } catch (thrown) {
    // EINVAL: the file system does not support idmapped mounts. Other errors are real.
    if (!(thrown instanceof CallError) || thrown.code !== "EINVAL") throw thrown;
    bind(await copyOf(layer, uid_base, copies), at, {});
  }
}

async function copyOf(layer: string, uid_base: number, copies: string): Promise<string> {
  const copy = join(copies, nameOf(layer, uid_base));
  if (existsSync(copy)) return copy;
  mkdirSync(copies, { recursive: true, mode: 0o711 });
  // Under a temporary name until complete, because we may be killed.
  const unfinished = `${copy}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  await program("cp", ["--archive", "--reflink=auto", "--no-target-directory", layer, unfinished], {
    timeout_ms: COPY_MS,
  });
  await moveOwners(unfinished, uid_base);
  renameSync(unfinished, copy);
  return copy;
}

/** A layer is some gigabytes at most. */
const COPY_MS = 600_000;

const nameOf = (layer: string, uid_base: number): string =>
  createHash("sha256").update(`${layer} ${uid_base}`).digest("hex").slice(0, 24);

/**
 * Changes the owners of a tree to the id block at `uid_base`, from any block. Blocks are aligned, so already changed
 * files are recognized, and it can be repeated after a crash. The directory itself is last.
 */
export async function moveOwners(path: string, uid_base: number): Promise<void> {
  const stat = await lstat(path);
  if (stat.isDirectory())
    for await (const { name } of await opendir(path)) await moveOwners(join(path, name), uid_base);
  await lchown(path, uid_base + (stat.uid % BLOCK), uid_base + (stat.gid % BLOCK));
}

/** Removes copies of layers of the machine's previous image. */
export function dropCopies(copies: string, layers: readonly string[], uid_base: number): void {
  if (!existsSync(copies)) return;
  const wanted = new Set(layers.map((layer) => nameOf(layer, uid_base)));
  for (const name of readdirSync(copies))
    if (!wanted.has(name)) rmSync(join(copies, name), { recursive: true, force: true });
}
