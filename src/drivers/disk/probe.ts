import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync } from "node:fs";
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Encryption } from "#volumes/types.ts";
import { makeExt4 } from "./ext4.ts";
import { LAYERS, type Layer } from "./layers.ts";
import { exists, run } from "./programs.ts";

export interface Probed {
  encryption: Encryption | undefined;
  /** Why encryption is not available, one reason per method. */
  reason: string;
}

const PROBE_BYTES = 16 * 1024 * 1024;

/** The best working encryption, probed once per boot of the host, in a tenth of a second. */
export async function probeEncryption(root: string, template: string): Promise<Probed> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  const file = join(root, "encryption.json");
  const known = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as Probed & { boot: string },
    () => undefined,
  );
  if (known?.boot === boot && known.encryption) return known;
  const reasons: string[] = [];
  for (const [name, layer] of Object.entries(LAYERS) as [keyof typeof LAYERS, Layer][]) {
    try {
      await NEEDS[name]();
      await tryOut(root, template, layer);
      const found = { encryption: name, reason: "" };
      await writeFile(file, JSON.stringify({ ...found, boot }));
      return found;
    } catch (error) {
      reasons.push(`${name}: ${messageOf(error)}`);
    }
  }
  return { encryption: undefined, reason: reasons.join("; ") };
}

const NEEDS: Record<keyof typeof LAYERS, () => Promise<void>> = {
  "dm-crypt": async () => {
    if (!hasDeviceMapper()) throw new Error("the kernel has no device mapper");
    await program("cryptsetup", "cryptsetup-bin");
  },
  fscrypt: () => program("perl", "perl-base"),
  gocryptfs: async () => {
    if (!existsSync("/dev/fuse")) throw new Error("the kernel has no FUSE");
    await program("gocryptfs", "gocryptfs");
    await program("fusermount", "fuse3");
  },
};

/** The device file alone proves nothing: programs create it before they query the kernel. */
export function hasDeviceMapper(): boolean {
  try {
    closeSync(openSync("/dev/mapper/control", "r"));
    return true;
  } catch {
    return false;
  }
}

async function program(command: string, its_package: string): Promise<void> {
  if (!(await exists(command))) throw new Error(`there is no ${command} (apt-get install ${its_package})`);
}

/** Creates and writes a small volume; the plaintext must not be found in the image. */
async function tryOut(root: string, template: string, layer: Layer): Promise<void> {
  const dir = await mkdtemp(join(root, "probe-"));
  const [image, point, key, id] = [join(dir, "image"), join(dir, "mnt"), randomBytes(64), `probe-${process.pid}`];
  const undo: (() => Promise<unknown>)[] = [() => rm(dir, { recursive: true, force: true })];
  try {
    await mkdir(point);
    {
      await using file = await open(image, "w");
      await file.truncate(PROBE_BYTES);
    }
    let device = image;
    if (layer.map) {
      const loop = (await run("losetup", ["--find", "--show", image])).trim();
      undo.push(() => run("losetup", ["--detach", loop]));
      device = await layer.map(loop, id, key);
      undo.push(async () => await layer.unmap?.(id));
    }
    await makeExt4(device, template, layer.features);
    await run("mount", ["-t", "ext4", "-o", device === image ? "loop" : "rw", device, point]);
    undo.push(() => run("umount", [point]));
    await layer.prepare?.(point, key);
    const clear = await layer.open(point, key);
    undo.push(async () => await layer.close?.(point));
    const secret = `the quick brown fox ${randomBytes(8).toString("hex")}`;
    await writeFile(join(clear, "file"), secret.repeat(100));
    await run("sync", ["--file-system", point]);
    if ((await readFile(image)).includes(secret)) throw new Error("what is written can be read in the image");
  } finally {
    for (const step of undo.toReversed()) await step();
  }
}
