/** The cgroups of real machines: where they are, what their limits are, and what is left of them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { cgroupDirs, isUnified, processesIn } from "#drivers/runtime/runc/cgroup.ts";
import { machinesCgroup, systemdRuns } from "#drivers/runtime/runc/delegation.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";

const never = new AbortController().signal;
const CONFIG: Launch["config"] = {
  image: "web",
  guest: { cpus: 1, memory_mb: 256, cpu_kind: "shared" },
  init: { exec: ["sleep", "100000"] },
};

/** An installation with one machine. */
async function installation(t: TestContext, cpu_kind: "shared" | "performance" = "shared") {
  const dir = mkdtempSync(join(tmpdir(), "hangar-cgroups-"));
  const node_id = randomBytes(8).toString("hex");
  const images = fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } });
  const where = { data_dir: join(dir, "data"), node_id, memory_key: MEMORY_KEY };
  const options = { ...where, clock: systemClock, log: silentLog, images };
  mkdirSync(options.data_dir);
  const driver = await openRuncDriver(options);
  let open = true;
  const down = async (): Promise<void> => {
    if (open) await driver.close();
    open = false;
    await takeDown(options);
  };
  t.after(async () => {
    await down();
    rmSync(dir, { recursive: true, force: true });
  });
  const launch = aLaunchIn(node_id, { ...CONFIG, guest: { ...CONFIG.guest, cpu_kind } });
  const { handle } = await driver.start(launch, never);
  return { node_id, launch, pid: Number(handle["pid"]), cgroup: `${machinesCgroup(node_id)}/${launch.id}`, down };
}

const MIB = 1024 * 1024;
/** What is in the files of a machine's cgroup, by version. A host's kernel may not count swap. */
const LIMITS: Record<"v1" | "v2", Record<string, string>> = {
  v1: {
    "memory/memory.limit_in_bytes": String(256 * MIB),
    "cpu/cpu.cfs_quota_us": "100000",
    "cpu/cpu.shares": "256",
    "pids/pids.max": String(RUNC_LIMITS.pids),
  },
  v2: {
    "unified/memory.max": String(256 * MIB),
    "unified/memory.swap.max": "0",
    "unified/cpu.max": "100000 100000",
    "unified/pids.max": String(RUNC_LIMITS.pids),
  },
};

const cgroupOf = (pid: number | string): string => readFileSync(`/proc/${pid}/cgroup`, "utf8");

suite("cgroups of machines", { skip: realMachinesMissing() }, () => {
  test("a machine's limits are set in its cgroup, and taking the installation down leaves no cgroup", async (t) => {
    const { cgroup, node_id, down } = await installation(t);
    const dirs = cgroupDirs(cgroup);
    for (const [path, wanted] of Object.entries(LIMITS[isUnified() ? "v2" : "v1"])) {
      const [tree = "", file = ""] = path.split("/");
      assert.equal(readFileSync(join(dirs[tree] ?? "", file), "utf8").trim(), wanted, path);
    }
    assert.ok(processesIn(cgroup).length > 1);
    await down();
    const parents = Object.values(cgroupDirs(machinesCgroup(node_id)));
    await until("its cgroups are gone", () => !parents.some((dir) => existsSync(dir)));
  });

  test("a machine with dedicated CPUs has a larger CPU weight than one with shared CPUs", async (t) => {
    const weight = ({ cgroup }: { cgroup: string }): number => {
      const { cpu, unified = "" } = cgroupDirs(cgroup);
      return Number(readFileSync(cpu ? join(cpu, "cpu.shares") : join(unified, "cpu.weight"), "utf8"));
    };
    const [shared, dedicated] = [await installation(t), await installation(t, "performance")];
    assert.ok(weight(shared) > 1, `the weight of shared CPUs is ${weight(shared)}`);
    assert.ok(weight(dedicated) > 2 * weight(shared), `${weight(dedicated)} beside ${weight(shared)}`);
  });

  const skip = systemdRuns() ? undefined : "systemd is not the first process here";
  test("under systemd machines and helpers are in a delegated scope per installation, outside our unit", {
    skip,
  }, async (t) => {
    const [one, other] = [await installation(t), await installation(t)];
    const scope = (node_id: string): string => `/hangar.slice/hangar-${node_id}.scope`;
    for (const { node_id, launch, pid } of [one, other]) {
      assert.match(cgroupOf(pid), new RegExp(`:${scope(node_id)}/machines/${launch.id}$`, "m"));
      const helpers = processesIn(`${scope(node_id)}/helpers`);
      const names = helpers.map((helper) => readFileSync(`/proc/${helper}/comm`, "utf8").trim());
      assert.ok(names.includes("sleep"), `what holds the scope open: ${names.join(" ")}`);
      assert.ok(names.includes("monitor"), `the monitor of the machine: ${names.join(" ")}`);
      assert.ok(!cgroupOf(process.pid).includes("hangar.slice"));
    }
    await one.down();
    assert.ok(!existsSync(cgroupDirs(scope(one.node_id))["unified"] ?? ""), "its scope is gone");
    assert.ok(existsSync(`/proc/${other.pid}`), "the other installation's machine runs on");
    await other.down();
    assert.ok(!existsSync(cgroupDirs("/hangar.slice")["unified"] ?? ""), "the slice goes with its last scope");
  });
});
