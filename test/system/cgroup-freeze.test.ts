/** Freezing real processes in real cgroups, and one that the kernel cannot freeze: it waits for a FUSE that hangs. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { lxcfsMissing } from "#drivers/choice.ts";
import { detach } from "#drivers/linux/calls.ts";
import { processesIn, removeCgroup } from "#drivers/runtime/runc/cgroup.ts";
import { freezeCgroup, freezeFile, isFrozen, thawCgroup } from "#drivers/runtime/runc/suspend/cgroup-freeze.ts";
import { tempDir, until } from "../support.ts";

const skip = process.getuid?.() === 0 ? undefined : "cgroups need root";

/** A process of the shell's in a cgroup of its own. */
function inCgroup(t: TestContext, script: string): { cgroup: string; pid: number } {
  const cgroup = `/hangar-test-${process.pid}/${t.name.length}`;
  const { file } = freezeFile(cgroup);
  mkdirSync(join(file, ".."), { recursive: true });
  const child = spawn("sh", ["-c", `echo $$ > "$0"; ${script}`, join(file, "../cgroup.procs")], { stdio: "ignore" });
  t.after(async () => {
    await until("its cgroup is gone", () => {
      for (const pid of processesIn(cgroup)) process.kill(pid, "SIGKILL");
      thawCgroup(cgroup);
      return removeCgroup(cgroup) && removeCgroup(join(cgroup, ".."));
    });
  });
  return { cgroup, pid: child.pid ?? assert.fail() };
}

const stateOf = (pid: number): string => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";

suite("cgroup freezer", { skip }, () => {
  test("a frozen cgroup stands still, can be frozen again, and resumes", async (t) => {
    const file = join(tempDir(), "count");
    const { cgroup } = inCgroup(t, `i=0; while :; do i=$((i+1)); echo $i > ${file}; done`);
    const count = (): number => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
    await until("it counts", () => processesIn(cgroup).length > 0 && count() > 10);
    await freezeCgroup(cgroup, systemClock, 5000);
    await freezeCgroup(cgroup, systemClock, 5000);
    const before = count();
    await systemClock.sleep(100);
    assert.equal(count(), before);
    thawCgroup(cgroup);
    await until("it goes on", () => count() > before + 10);
    assert.ok(!isFrozen(freezeFile(cgroup)));
  });

  test("a process blocked in the kernel is named, and the cgroup is thawed again", {
    skip: lxcfsMissing(),
  }, async (t) => {
    const dir = tempDir();
    const mount = join(dir, "mount");
    mkdirSync(mount);
    const lxcfs = spawn("lxcfs", ["--foreground", `--pidfile=${dir}/pid`, mount], { stdio: "ignore" });
    t.after(() => {
      lxcfs.kill("SIGKILL");
      detach(mount);
    });
    await until("lxcfs is mounted", () => readFileSync("/proc/self/mountinfo", "utf8").includes(` ${mount} `));
    await until("it answers", () => readFileSync(join(mount, "proc/uptime"), "utf8") !== "");
    lxcfs.kill("SIGSTOP");
    const { cgroup, pid } = inCgroup(t, `exec cat ${mount}/proc/meminfo`);
    await until("it waits for an answer", () => processesIn(cgroup).length > 0 && "DS".includes(stateOf(pid)));
    await assert.rejects(
      freezeCgroup(cgroup, systemClock, 300),
      /process \d+ \(cat\) waits inside the kernel and could not be frozen within 0.3 s/,
    );
    assert.match(readFileSync(freezeFile(cgroup).file, "utf8"), /^(THAWED|0)$/m, "it was let go again");
    lxcfs.kill("SIGCONT");
    await until("it has its answer and ends", () => processesIn(cgroup).length === 0);
    assert.doesNotThrow(() => thawCgroup(`${cgroup}/gone`), "a cgroup that is gone is no fault");
  });
});
