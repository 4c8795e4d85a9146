/** A small disk of its own for a test: ext4 on a loop file, whose power can be cut. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

export interface TestDisk {
  readonly dir: string;
  /** As if the power went: what was not synced is lost, what comes after fails. */
  cut(): void;
  /** Unmounts and mounts again; the file system recovers as it would at the next boot. */
  remount(): void;
}

/** Why there can be no such disk here, or undefined. */
export function whyNoDisk(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root to mount a loop file";
  for (const tool of ["mkfs.ext4", "mount", "perl"]) {
    if (spawnSync("sh", ["-c", `command -v ${tool}`]).status !== 0) return `needs ${tool}`;
  }
  return undefined;
}

/** The "going down" ioctl of ext4 with flag 2: without flushing its log. */
const CUT = 'open(my $f, "<", $ARGV[0]) or die $!; my $n = pack("L", 2); ioctl($f, 0x8004587d, $n) or die $!;';

/** It and its folder are gone when the test ends. */
export function openDisk(t: Pick<TestContext, "after">, mib: number): TestDisk {
  const folder = mkdtempSync(join(tmpdir(), "hangar-disk-"));
  const image = join(folder, "disk.img");
  const dir = join(folder, "disk");
  mkdirSync(dir);
  writeFileSync(image, "");
  truncateSync(image, mib * 1024 * 1024);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", image]);
  const mount = (): void => void execFileSync("mount", ["-o", "loop", image, dir]);
  const unmount = (): void => void execFileSync("umount", [dir]);
  mount();
  let mounted = true;
  t.after(() => {
    // Lazily: a test that failed half-way may still have files open.
    if (mounted) execFileSync("umount", ["-l", dir]);
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    dir,
    cut: () => void execFileSync("perl", ["-e", CUT, dir]),
    remount() {
      unmount();
      mounted = false;
      mount();
      mounted = true;
    },
  };
}
