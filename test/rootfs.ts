/** Images for tests with real machines, made from what this box has: busybox, and its own Node and Python. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { HeldImage, ImageConfig, ImageSource } from "#machines/runtime/image-source.ts";

/** Seals the memory of suspended machines: the same at every start of a test's installation. */
export const MEMORY_KEY = Buffer.alloc(32, "memory");

/** Why no real machine can be started here, or undefined. */
export function realMachinesMissing(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "real machines need root on Linux";
  const missing = ["runc", "ip", "nsenter", "mkfs.ext4", "busybox"].filter(
    (name) => spawnSync("which", [name]).status !== 0,
  );
  return missing.length === 0 ? undefined : `these programs are missing: ${missing.join(" ")}`;
}

/** Why machines cannot be written to the disk here, or undefined. */
export const criuMissing = (): string | undefined =>
  spawnSync("which", ["criu"]).status === 0 ? undefined : "this program is missing: criu";

/** A root file system with busybox in it. */
export function busyboxLayer(dir: string): string {
  mkdirSync(join(dir, "bin"), { recursive: true });
  for (const folder of ["tmp", "root", "etc", "usr/bin", "home/app"]) mkdirSync(join(dir, folder), { recursive: true });
  cpSync("/usr/bin/busybox", join(dir, "bin/busybox"));
  const names = spawnSync("/usr/bin/busybox", ["--list"], { encoding: "utf8" }).stdout.trim().split("\n");
  for (const name of names) if (name !== "busybox") symlinkSync("busybox", join(dir, "bin", name));
  writeFileSync(join(dir, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n");
  writeFileSync(join(dir, "etc/group"), "root:x:0:\napp:x:1000:\nextra:x:2000:app\n");
  return dir;
}

/** A program of this box with the libraries it needs. */
export function programLayer(dir: string, program: string, name: string): string {
  const libraries = spawnSync("ldd", [program], { encoding: "utf8" }).stdout.matchAll(/(\/\S+)/g);
  const files: [string, string][] = [...libraries].map(([, file = ""]) => [file, file]);
  for (const [from, to] of [...files, [program, `/usr/bin/${name}`] as const]) {
    const at = join(dir, to);
    if (existsSync(at)) continue;
    mkdirSync(dirname(at), { recursive: true });
    cpSync(realpathSync(from), at);
  }
  return dir;
}

export interface FixtureImage {
  layers: readonly string[];
  config?: Partial<ImageConfig>;
}

/** Images by their repository's name, as the store of images would give them. */
export function fixtureImages(images: Record<string, FixtureImage>): ImageSource {
  const ref = (repository: string) => ({ registry: "fixture", repository, digest: `sha256:${"0".repeat(64)}` });
  const find = (name: string): HeldImage => {
    const image = images[name];
    if (!image) throw new Error(`there is no image ${name}`);
    const config = { entrypoint: [], cmd: [], env: {}, user: "", working_dir: "", ...image.config };
    return { ref: ref(name), layers: image.layers, config, architecture: "amd64", labels: {}, exposed_ports: [] };
  };
  return {
    resolve: async (name) => find(name).ref,
    hold: async (_id, { repository }) => find(repository),
    release: async () => {},
  };
}
