/** What programs in a machine take its size to be: Debian's own, asked before and after a suspend. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { lxcfsMissing } from "#drivers/choice.ts";
import { cgroupDirs } from "#drivers/runtime/runc/cgroup.ts";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { LXCFS_FILES } from "#drivers/runtime/runc/lxcfs.ts";
import { openParts } from "#drivers/runtime/runc/parts.ts";
import { numberIn, startOf } from "#drivers/runtime/runc/process-table.ts";
import type { BundleBuilder } from "#drivers/runtime/runc/rootfs/bundle-builder.ts";
import { aLaunchIn, resumedOf } from "#machines/fixtures.ts";
import type { Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { Warnings } from "./warnings.ts";

const PACKAGES = ["python3", "nodejs", "procps", "coreutils", "bash"];
const MB = 1024 * 1024;
const never = new AbortController().signal;
const SLEEP = ["/usr/bin/python3", "-c", "import signal; signal.pause()"];
const HOST_CPUS = availableParallelism();

/** What each program says, by name. */
const LXCFS_QUESTIONS: Record<string, string[]> = {
  cpu_count: ["python3", "-c", "import os; print(os.cpu_count())"],
  cpus: ["node", "-p", "os.cpus().length"],
  totalmem: ["node", "-p", "os.totalmem()"],
  free: ["free", "--bytes"],
  cpuinfo: ["python3", "-c", "print(open('/proc/cpuinfo').read().count('processor\\t'))"],
  stat: ["python3", "-c", "import re; print(len(re.findall(r'^cpu[0-9]+ ', open('/proc/stat').read(), re.M)))"],
  uptime: ["cat", "/proc/uptime"],
  loadavg: ["cat", "/proc/loadavg"],
  swaps: ["cat", "/proc/swaps"],
  diskstats: ["cat", "/proc/diskstats"],
};
const QUESTIONS: Record<string, string[]> = {
  nproc: ["nproc"],
  affinity: ["python3", "-c", "import os; print(len(os.sched_getaffinity(0)))"],
  parallelism: ["node", "-p", "os.availableParallelism()"],
  constrained: ["node", "-p", "process.constrainedMemory()"],
  cgroups: ["cat", "/proc/self/cgroup"],
  cgroup_mounts: ["python3", "-c", "print(*[l for l in open('/proc/self/mountinfo') if 'cgroup' in l], sep='')"],
};

suite("size of a machine as seen inside", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-size-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const warnings = new Warnings();
  const images = fixtureImages({ debian: { layers: [join(dir, "debian")] } });
  let driver: RuntimeDriver;

  const openDriver = async (more: { lxcfs?: string } = {}): Promise<void> => {
    driver = await openRuncDriver({
      ...installation,
      memory_key: MEMORY_KEY,
      ...more,
      clock: systemClock,
      log: warnings.log,
      images,
    });
  };
  before(async () => {
    for (const folder of [installation.data_dir, join(dir, "debian")]) mkdirSync(folder);
    packageRoot(join(dir, "debian"), PACKAGES);
    await openDriver();
  });
  after(async () => {
    await driver.close();
    const pid = lxcfsPid();
    await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    assert.equal(startOf(pid), undefined, "lxcfs has ended");
    rmSync(dir, { recursive: true, force: true });
  });

  const launchOf = (guest: object = {}, boot = "b1"): Launch =>
    aLaunchIn(
      "size",
      { image: "debian", guest: { cpus: 1, memory_mb: 256, cpu_kind: "shared", ...guest }, init: { exec: SLEEP } },
      { boot },
    );
  const start = async (launch: Launch): Promise<Ref> => {
    const { handle } = await driver.start(launch, never);
    return { id: launch.id, boot: launch.boot, handle };
  };
  const inside = async (ref: Ref, command: readonly string[]): Promise<string> => {
    const { exit_code, stdout, stderr } = await driver.exec(ref, { command, timeout_ms: 60_000 }, never);
    assert.equal(exit_code, 0, `${command.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  const ask = async (ref: Ref, questions = QUESTIONS): Promise<Record<string, string>> => {
    const answers = Object.entries(questions).map(async ([name, words]) => [name, await inside(ref, words)] as const);
    return Object.fromEntries(await Promise.all(answers));
  };
  const sleepAndWake = async (launch: Launch, ref: Ref): Promise<Ref> => {
    assert.equal((await driver.suspend(ref, never)).kind, "snapshot");
    const resumed = resumedOf(await driver.resume(launch, ref.handle ?? {}, never));
    return { ...ref, handle: resumed.handle };
  };
  const cgroupOf = (id: string): string => `${machinesCgroup(installation.node_id)}/${id}`;
  const pinned = (id: string): string => {
    const { cpuset, unified } = cgroupDirs(cgroupOf(id));
    return readFileSync(join(cpuset ?? unified ?? "", "cpuset.cpus"), "utf8").trim();
  };

  const assertOneCpu256 = (said: Record<string, string>): void => {
    for (const name of ["nproc", "affinity", "parallelism"]) assert.equal(said[name], "1", name);
    assert.equal(said["constrained"], String(256 * MB));
    for (const line of said["cgroups"]?.split("\n") ?? []) assert.match(line, /:\/$/, "its own cgroup is the root");
    const mounts = said["cgroup_mounts"]?.split("\n").filter((line) => / - cgroup2? /.test(line)) ?? [];
    assert.ok(mounts.length > 0, "cgroups are mounted");
    for (const mount of mounts) {
      const [, , , root, , options = ""] = mount.split(" ");
      assert.equal(root, "/", "nothing shows of where the host keeps it");
      assert.equal(options.split(",")[0], "ro");
    }
    assert.doesNotMatch(said["cgroup_mounts"] ?? "", new RegExp(`hangar/${installation.node_id}/[0-9a-f]+ /sys`));
  };

  test("cgroup namespace, cgroup mount and CPU pinning are the machine's own, after a resume as well", async () => {
    const launch = launchOf();
    const ref = await start(launch);
    assertOneCpu256(await ask(ref));
    const again = await sleepAndWake(launch, ref);
    assertOneCpu256(await ask(again));
    await driver.destroy(ref.id, never);
  });

  const LXCFS = { skip: lxcfsMissing() };
  const assertOwnProc = (said: Record<string, string>): void => {
    for (const name of ["cpu_count", "cpus", "cpuinfo", "stat"]) assert.equal(said[name], "1", name);
    assert.equal(said["totalmem"], String(256 * MB));
    const [, total, used] = /^Mem:\s+(\d+)\s+(\d+)/m.exec(said["free"] ?? "") ?? [];
    assert.equal(total, String(256 * MB));
    assert.ok(Number(used) < 200 * MB, `it uses ${used} bytes`);
    const [up = ""] = said["uptime"]?.split(" ") ?? [];
    assert.ok(Number(up) < Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]), "up for less than the host");
    assert.match(said["loadavg"] ?? "", /^\d+\.\d\d \d/);
    assert.match(said["swaps"] ?? "", /^Filename/);
  };

  test("/proc shows the machine's own memory, CPUs and uptime, after a resume as well", LXCFS, async () => {
    const launch = launchOf();
    const ref = await start(launch);
    assertOwnProc(await ask(ref, LXCFS_QUESTIONS));
    assertOwnProc(await ask(await sleepAndWake(launch, ref), LXCFS_QUESTIONS));
    await driver.destroy(ref.id, never);
  });

  const lxcfsPid = (): number => numberIn(`/run/hangar/${installation.node_id}/lxcfs.pid`) ?? -1;
  const readable = async (ref: Ref): Promise<boolean> => {
    const command = ["python3", "-c", "print(open('/proc/meminfo').readline().split()[1])"];
    const { stdout } = await driver.exec(ref, { command, timeout_ms: 60_000 }, never);
    return stdout.trim() === String(256 * 1024);
  };

  for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
    test(`machines can read /proc again after lxcfs got ${signal}, and after a resume`, LXCFS, async () => {
      const launch = launchOf();
      const ref = await start(launch);
      const before = lxcfsPid();
      process.kill(before, signal);
      await until(
        "another lxcfs answers in the machine",
        async () => ![before, -1].includes(lxcfsPid()) && readable(ref),
      );
      assertOwnProc(await ask(ref, LXCFS_QUESTIONS));
      const mounts = await inside(ref, ["python3", "-c", "print(open('/proc/self/mountinfo').read())"]);
      const files = mounts.split("\n").filter((line) => line.includes("fuse.lxcfs"));
      assert.equal(files.length, LXCFS_FILES.length, "the dead ones are gone");
      for (const line of files) assert.match(line.split(" ")[5] ?? "", /^ro,nosuid,nodev/);
      assertOwnProc(await ask(await sleepAndWake(launch, ref), LXCFS_QUESTIONS));
      await driver.destroy(ref.id, never);
    });
  }

  test("a machine is suspended, stopped and started while lxcfs is dead", LXCFS, async () => {
    const [first, second, third] = [launchOf(), launchOf(), launchOf()];
    const [suspended, stopped] = [await start(first), await start(second)];
    process.kill(lxcfsPid(), "SIGKILL");
    const [again, , fresh] = await Promise.all([
      sleepAndWake(first, suspended),
      driver.stop(stopped, { signal: "SIGKILL", timeout_ms: 1000 }, never),
      start(third),
    ]);
    await until("both can read /proc", async () => (await readable(again)) && (await readable(fresh)));
    for (const { id } of [first, second, third]) await driver.destroy(id, never);
  });

  test("lxcfs survives a restart of the driver, and is started again if it died meanwhile", LXCFS, async () => {
    const ref = await start(launchOf());
    const before = lxcfsPid();
    await driver.close();
    await openDriver();
    assert.ok(await readable(ref));
    assert.equal(lxcfsPid(), before, "it was adopted");
    await driver.close();
    process.kill(before, "SIGKILL");
    await openDriver();
    await until("the machine can read /proc", () => readable(ref));
    await driver.destroy(ref.id, never);
  });

  test("without lxcfs machines start, and a snapshot that used its files is resumed", LXCFS, async () => {
    const launch = launchOf();
    const ref = await start(launch);
    assert.equal((await driver.suspend(ref, never)).kind, "snapshot");
    await driver.close();
    const pid = lxcfsPid();
    process.kill(pid, "SIGKILL");
    await until("lxcfs has ended", async () => startOf(pid) === undefined);
    await openDriver({ lxcfs: "/nonexistent/lxcfs" });
    resumedOf(await driver.resume(launch, ref.handle ?? {}, never));
    assert.equal(await inside(ref, ["nproc"]), "1");
    assert.match(await inside(ref, ["cat", "/proc/meminfo"]), /^MemTotal:/);
    const fresh = await start(launchOf());
    assert.deepEqual([await inside(fresh, ["nproc"]), await readable(fresh)], ["1", false]);
    for (const { id } of [ref, fresh]) await driver.destroy(id, never);
    await driver.close();
    await openDriver();
  });

  test("cgroups are read-only inside, and give no way to escape", async () => {
    const launch = launchOf();
    let ref = await start(launch);
    const tries = `
import os, errno
for dir, names, files in os.walk("/sys/fs/cgroup"):
    for path in [dir + "/made"] + [dir + "/" + f for f in files if f in ("release_agent", "cgroup.procs", "tasks", "memory.limit_in_bytes", "memory.max", "cpuset.cpus")]:
        try:
            os.mkdir(path) if path.endswith("/made") else open(path, "w").write("1")
            print("written", path)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES): print(error)`;
    for (const woken of [false, true]) {
      if (woken) ref = await sleepAndWake(launch, ref);
      assert.equal(await inside(ref, ["python3", "-c", tries]), "");
    }
    await driver.destroy(ref.id, never);
  });

  test("a machine with all CPUs of the host sees them", async () => {
    const ref = await start(launchOf({ cpus: HOST_CPUS }));
    assert.equal(await inside(ref, ["nproc"]), String(HOST_CPUS));
    await driver.destroy(ref.id, never);
  });

  test("machines with one CPU are spread evenly, also after a restart and after some ended", {
    skip: HOST_CPUS < 2 ? "there is one CPU" : undefined,
  }, async () => {
    const counts = (ids: readonly string[]): number[] => {
      const load = new Map<string, number>();
      for (const id of ids) load.set(pinned(id), (load.get(pinned(id)) ?? 0) + 1);
      return [...load.values()];
    };
    const even = (ids: readonly string[], what: string): void => {
      const found = counts(ids);
      const least = Math.min(ids.length, HOST_CPUS);
      assert.equal(found.length, least, `${what}: ${found.join(", ")}`);
      assert.ok(Math.max(...found) - Math.min(...found) <= 1, `${what}: ${found.join(", ")}`);
    };
    const refs = await Promise.all([1, 2, 3].map(() => start(launchOf())));
    even(
      refs.map(({ id }) => id),
      "started at once",
    );
    await driver.close();
    await openDriver();
    refs.push(await start(launchOf()));
    even(
      refs.map(({ id }) => id),
      "one more after a restart",
    );
    // All but those of one CPU end: the rest must not stay on it.
    const crowded = pinned(refs[0]?.id ?? "");
    const gone = refs.filter(({ id }) => pinned(id) !== crowded);
    const left = refs.filter(({ id }) => pinned(id) === crowded);
    for (const { id } of gone) await driver.destroy(id, never);
    even(
      left.map(({ id }) => id),
      "after the others ended",
    );
    for (const { id } of left) await driver.destroy(id, never);
  });

  test("a machine booted by an older version without a cgroup namespace is suspended and resumed", async () => {
    await driver.close();
    const launch = launchOf();
    const { containers } = openParts({
      ...installation,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: warnings.log,
      images,
    });
    asOlderVersion(containers.parts.bundles, join(installation.node_id, "m", launch.id));
    const { handle } = await containers.start(launch, never);
    await containers.close();
    await openDriver();
    const ref = { id: launch.id, boot: launch.boot, handle };
    assert.match(await inside(ref, ["cat", "/proc/self/cgroup"]), /hangar/);
    const again = await sleepAndWake(launch, ref);
    assert.match(await inside(again, ["cat", "/proc/self/cgroup"]), /hangar/, "exec finds its way in");
    await driver.destroy(ref.id, never);
  });
});

interface Bundle {
  mounts: { destination: string }[];
  linux: { namespaces: { type: string }[]; readonlyPaths: string[] };
}

/** Takes back from the bundle and the record what versions before did not have. */
function asOlderVersion(stage: BundleBuilder, run: string): void {
  const build = stage.build.bind(stage);
  const file = join("/run/hangar", run, "bundle/config.json");
  stage.build = async (...given) => {
    const { own_cgroup: _, lxcfs: __, ...record } = await build(...given);
    const bundle = JSON.parse(readFileSync(file, "utf8")) as Bundle;
    const { mounts, linux } = bundle;
    const own = (path: string): boolean => ["/sys/fs/cgroup", ...LXCFS_FILES].includes(path);
    const namespaces = linux.namespaces.filter(({ type }) => type !== "cgroup");
    const readonlyPaths = linux.readonlyPaths.filter((path) => !own(path));
    const older = {
      ...bundle,
      mounts: mounts.filter(({ destination }) => !own(destination)),
      linux: { ...linux, namespaces, readonlyPaths },
    };
    writeFileSync(file, JSON.stringify(older));
    return record;
  };
}
