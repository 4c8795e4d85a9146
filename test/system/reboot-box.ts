/**
 * A box that can be rebooted under a platform with real machines. Its processes, mounts, run dir and network are its own,
 * so what a reboot ends is ended by the kernel: killing the box's first process kills every other one in it, and with the
 * last one its mounts go and their loop devices with them. What is on the disk stays. Needs `ownNetwork`.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { processesIn, removeCgroup } from "#drivers/runtime/runc/cgroup.ts";
import { freezeFile, thawCgroup } from "#drivers/runtime/runc/suspend/cgroup-freeze.ts";
import { until } from "../support.ts";
import { traces } from "../volumes.ts";
import { Child, ROOT } from "./child.ts";
import { nodeIdOf } from "./leaks.ts";
import { type Caller, callerOf } from "./runc-support.ts";

/**
 * The first process of the box takes in those whose parents died, as any first process does. Another run of the kernel
 * has another name, which is put over the old one; a /proc with nothing over it is what the kernel wants to see before a
 * machine, which is another user, may have one of its own.
 */
const BOX = `set -e
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/cgroup /run/proc
mount -t proc proc /run/proc
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
mount --bind "$1" /proc/sys/kernel/random/boot_id
shift
"$@" &
wait $!`;

/** Why there can be no such box here, or undefined. */
export function boxMissing(): string | undefined {
  const tried = spawnSync("unshare", ["--mount", "--pid", "--fork", "--kill-child", "true"]);
  return tried.status === 0 ? undefined : "processes cannot have a namespace of their own here";
}

export class RebootBox {
  readonly data_dir: string;
  /** A folder here is an image of the same name. */
  readonly images: string;
  readonly #dir: string;
  #first: Child | undefined;

  readonly #env: NodeJS.ProcessEnv;

  constructor(t: Pick<TestContext, "after">, env: NodeJS.ProcessEnv = {}) {
    this.#env = env;
    this.#dir = mkdtempSync(join(tmpdir(), "hangar-reboot-"));
    this.data_dir = join(this.#dir, "data");
    this.images = join(this.#dir, "images");
    mkdirSync(this.images);
    t.after(async () => {
      await this.powerOff();
      rmSync(this.#dir, { recursive: true, force: true });
    });
  }

  /** Starts the box, and the platform on it. */
  async boot(): Promise<Caller> {
    assert.equal(this.#first, undefined, "it is off");
    const name = join(this.#dir, "boot_id");
    writeFileSync(name, `${crypto.randomUUID()}\n`);
    const platform = [process.execPath, join(ROOT, "test/system/runc-daemon.ts"), this.data_dir, this.images];
    const own = ["--mount", "--pid", "--fork", "--kill-child=KILL"];
    // As under npm: what is started at every boot is compiled once.
    const env = { NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/compile"), ...process.env, ...this.#env };
    this.#first = new Child("unshare", [...own, "bash", "-c", BOX, "box", name, ...platform], { env });
    const base_url = (await this.#first.until(/^ready /)).slice("ready ".length);
    return callerOf(base_url, readFileSync(join(this.data_dir, "token"), "utf8").trim());
  }

  /**
   * Everything ends at once, without a word to anybody. Waits until the kernel is through with it, which takes a moment
   * after the last process is gone, and takes away what only another run of the kernel would: cgroups and devices.
   */
  async powerOff(): Promise<void> {
    await this.#first?.kill();
    this.#first = undefined;
    if (!existsSync(join(this.data_dir, "node_id"))) return;
    const cgroup = `/hangar/${nodeIdOf(this.data_dir)}`;
    await until("every process of the box is gone", () => processesIn(cgroup).length === 0);
    // What was frozen is killed, and ends when it is thawed.
    for (const id of machinesIn(cgroup)) thawCgroup(`${cgroup}/${id}`);
    await until("its cgroups are", () => removeCgroup(cgroup));
    await until("its loop devices are", () => traces(this.data_dir).loops.length === 0);
    for (const device of devices()) spawnSync("ip", ["link", "del", device]);
    await until("its network devices are", () => devices().length === 0);
    assert.equal(spawnSync("nft", ["flush", "ruleset"]).status, 0);
  }
}

function machinesIn(cgroup: string): string[] {
  const dir = join(freezeFile(cgroup).file, "..");
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/** Of the network that the test has for itself: all but the loopback device. */
const devices = (): string[] =>
  readFileSync("/proc/self/net/dev", "utf8")
    .split("\n")
    .slice(2)
    .flatMap((line) => line.trim().split(":")[0] || [])
    .filter((name) => name !== "lo");

/**
 * Processes of this host, in whatever box, that run for the machine and have these words in their command. One that has
 * just been forked has those of its parent, and is not counted.
 */
export function programsOf(machine: string, words: string): number[] {
  const found = new Map<number, number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(words)) continue;
      if (!readFileSync(`/proc/${pid}/environ`, "utf8").includes(`SVC_MACHINE_ID=${machine}`)) continue;
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      found.set(Number(pid), Number(parent));
    } catch {
      // It ended while it was looked at.
    }
  }
  return [...found].flatMap(([pid, parent]) => (found.has(parent) ? [] : [pid]));
}
