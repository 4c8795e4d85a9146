/**
 * Boxes of one's own on this box: each has a network, devices and mounts of its own, and a cable to a switch that can
 * be pulled. What runs on one sees nothing of the others but what comes through the cable.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { Child, ROOT } from "./child.ts";

export interface Box {
  address: string;
  /** A program on it. */
  start(command: string, ...args: string[]): Child;
  /** One that ends by itself; answers what it printed. */
  run(command: string, ...args: string[]): { status: number | null; stdout: string; stderr: string };
  /** A TypeScript program of ours. */
  program(file: string, args: readonly string[]): Child;
  cut(): void;
  mend(): void;
}

export interface Lan {
  /** The address of the test's own box. */
  address: string;
  box(): Promise<Box>;
  /** Boxes and cables are gone; what still runs on a box loses its network and its mounts. */
  close(): Promise<void>;
}

/** A box sees its own devices in /sys, and the cgroups that all boxes share. */
const HOLD = `set -e
mount -t tmpfs tmpfs "$1"; mkdir "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
ip link set lo up
echo ready
exec sleep infinity`;

export function aLan(): Lan {
  const name = `hgt${randomInt(0x10000).toString(16).padStart(4, "0")}`;
  const net = `198.19.${freeNet()}`;
  const holders: Child[] = [];
  ip(`link add ${name} type bridge`);
  ip(`address add ${net}.1/24 dev ${name}`);
  ip(`link set ${name} up`);
  return {
    address: `${net}.1`,
    async box() {
      const holder = new Child("unshare", ["--net", "--mount", "bash", "-c", HOLD, "hold", "/mnt"]);
      holders.push(holder);
      await holder.until(/^ready/);
      const cable = `${name}c${holders.length}`;
      const address = `${net}.${holders.length + 1}`;
      const into = ["-t", String(holder.pid), "--net", "--mount", "--"];
      ip(`link add ${cable} type veth peer name eth0 netns ${holder.pid}`);
      ip(`link set ${cable} master ${name} up`);
      const box: Box = {
        address,
        start: (command, ...args) => new Child("nsenter", [...into, command, ...args]),
        run: (command, ...args) => spawnSync("nsenter", [...into, command, ...args], { encoding: "utf8" }),
        program: (file, args) => box.start(process.execPath, join(ROOT, file), ...args),
        cut: () => ip(`link set ${cable} down`),
        mend: () => ip(`link set ${cable} up`),
      };
      for (const words of [`address add ${address}/24 dev eth0`, "link set eth0 up"])
        assert.equal(box.run("ip", ...words.split(" ")).status, 0);
      return box;
    },
    async close() {
      // A box goes with the last process on it; one that was killed may have left some, such as a tunnel's.
      for (const holder of holders) {
        for (const pid of processesOn(holder.pid)) end(pid);
        await holder.ended;
      }
      ip(`link del ${name}`);
    },
  };
}

/** Of 198.19.0.0/16, which is for tests of networks: one that no other test has right now. */
function freeNet(): number {
  const { stdout } = spawnSync("ip", ["-4", "-o", "addr"], { encoding: "utf8" });
  for (;;) {
    const net = randomInt(1, 255);
    if (!stdout.includes(` 198.19.${net}.`)) return net;
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It was faster.
  }
}

/** Everything whose network is that of the box. */
function processesOn(holder: number): number[] {
  const networkOf = (pid: number | string): string => {
    try {
      return readlinkSync(`/proc/${pid}/ns/net`);
    } catch {
      return "";
    }
  };
  const own = networkOf(holder);
  // It is gone already; those whose network cannot be read are not its own.
  if (own === "") return [];
  assert.notEqual(own, networkOf("self"), "a box has a network of its own");
  return readdirSync("/proc").flatMap((pid) => (/^\d+$/.test(pid) && networkOf(pid) === own ? [Number(pid)] : []));
}

function ip(words: string): void {
  const { status, stderr } = spawnSync("ip", words.split(" "), { encoding: "utf8" });
  assert.equal(status, 0, `ip ${words}: ${stderr}`);
}
