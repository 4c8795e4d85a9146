/**
 * The guard of a host's machines, with real processes in real cgroups: machines stop in time, whichever process has
 * died.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { cgroupDirs, processesIn, removeCgroup } from "#drivers/runtime/runc/cgroup.ts";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { enclose, processCgroup } from "#drivers/runtime/runc/enclosure.ts";
import { openFence } from "#drivers/runtime/runc/fence.ts";
import { freezeFile, isFrozen, thawCgroup } from "#drivers/runtime/runc/suspend/cgroup-freeze.ts";
import { tempDir } from "../support.ts";
import { startProgram } from "./child.ts";
import { until } from "./hosts-support.ts";

const root = process.getuid?.() === 0 ? undefined : "cgroups need root";

const IDS = ["m1", "m2"] as const;

/** A process that counts, in a machine's place below a host's cgroup. */
function machine(t: TestContext, node_id: string, id: (typeof IDS)[number]): { count(): number; pid: number } {
  const file = join(tempDir(), "count");
  writeFileSync(file, "0");
  const script = `i=0; while :; do i=$((i+1)); echo $i > ${file}; sleep 0.01; done`;
  const child = spawn("bash", ["-c", script], { stdio: "ignore" });
  const pid = child.pid ?? assert.fail();
  t.after(async () => {
    await until("its cgroup is gone", async () => {
      // The guard may have frozen them once more when its folder went away, and what is frozen does not end.
      for (const name of IDS) thawCgroup(`${machinesCgroup(node_id)}/${name}`);
      // All of the host's, since its cgroup goes with the last of them; and again, for what one began just then.
      for (const one of [
        pid,
        ...IDS.flatMap((name) => processesIn(processCgroup(`${machinesCgroup(node_id)}/${name}`))),
      ])
        try {
          process.kill(one, "SIGKILL");
        } catch {
          // It has ended already.
        }
      return removeCgroup(machinesCgroup(node_id));
    });
  });
  const around = `${machinesCgroup(node_id)}/${id}`;
  enclose(around);
  for (const dir of new Set(Object.values(cgroupDirs(processCgroup(around))))) {
    mkdirSync(dir, { recursive: true });
    // A tree without processors of its own takes nobody in, and is not needed.
    if (!dir.includes("cpuset")) writeFileSync(join(dir, "cgroup.procs"), String(pid));
  }
  return { count: () => Number(readFileSync(file, "utf8")) || 0, pid };
}

/** Whether the counter still counts, observed for long enough. */
async function runs({ count }: { count(): number }): Promise<boolean> {
  const before = count();
  await systemClock.sleep(200);
  return count() > before;
}

/** Much longer than it takes to see that something runs. */
const EXTENDED_MS = 5000;

const nodeId = (name: string): string => `guard${process.pid}${name}`;

function fenceOf(t: TestContext, node_id: string) {
  const data_dir = tempDir();
  const fence = openFence({ data_dir, node_id, clock: systemClock, log: silentLog });
  t.after(async () => {
    await fence.open([]);
    rmSync(`/run/hangar/${node_id}`, { recursive: true, force: true });
  });
  return fence;
}

suite("host guard", { skip: root }, () => {
  test("a machine is frozen without renewal, thawed on release, and a removed one never runs again", async (t) => {
    const node_id = nodeId("a");
    const fence = fenceOf(t, node_id);
    const [stays, goes] = [machine(t, node_id, "m1"), machine(t, node_id, "m2")];
    fence.extend(60_000);
    assert.ok(await until("it counts", () => runs(stays)));
    fence.extend(100);
    await fence.shut();
    assert.equal(await runs(stays), false);
    const last = goes.count();
    fence.extend(60_000);
    assert.equal(await runs(stays), false, "more time alone lets nothing go on");
    await fence.open(["m2"]);
    assert.ok(await until("it goes on", () => runs(stays)));
    assert.equal(goes.count(), last, "it did not take one more step");
    assert.ok(await until("it is dead", async () => !existsSync(`/proc/${goes.pid}/exe`)));
  });

  test("an exempt machine runs on until its exemption ends", async (t) => {
    const node_id = nodeId("b");
    const fence = fenceOf(t, node_id);
    const [stays, leaves] = [machine(t, node_id, "m1"), machine(t, node_id, "m2")];
    fence.exempt("m1");
    assert.deepEqual(fence.exempted(), ["m1"]);
    fence.extend(1);
    await until("the guard stops the other", async () => !(await runs(leaves)));
    await until("the guard leaves it alone", () => runs(stays));
    await fence.shut();
    await until("and so do we", () => runs(stays));
    fence.include("m1");
    await until("the guard stops it as well", async () => !(await runs(stays)));
    fence.extend(60_000);
    await fence.open([]);
    for (const one of [stays, leaves]) await until("it goes on", () => runs(one));
  });

  test("a process thawed or started inside a fenced cgroup does not run", async (t) => {
    const node_id = nodeId("c");
    const fence = fenceOf(t, node_id);
    const stays = machine(t, node_id, "m1");
    await until("it counts", () => runs(stays));
    fence.extend(1);
    await until("the guard stops it", async () => !(await runs(stays)));
    thawCgroup(processCgroup(`${machinesCgroup(node_id)}/m1`));
    assert.equal(await runs(stays), false, "a machine that is suspended by freezing is thawed so");
    // The guard looks again and again: one that is on its way has a place that is fenced before anything is in it.
    enclose(`${machinesCgroup(node_id)}/m2`);
    const file = freezeFile(`${machinesCgroup(node_id)}/m2`);
    await until("its place is fenced", async () => isFrozen(file));
    const late = machine(t, node_id, "m2");
    const last = late.count();
    assert.equal(await runs(late), false);
    assert.ok(late.count() <= last + 1, "it had begun outside, and took no further step inside");
    fence.extend(60_000);
    await fence.open([]);
    for (const one of [stays, late]) await until("it goes on", () => runs(one));
  });

  test("a fenced machine stays frozen after a late renewal, until its host opens the fence", async (t) => {
    const node_id = nodeId("d");
    const fence = fenceOf(t, node_id);
    const counting = machine(t, node_id, "m1");
    await until("it counts", () => runs(counting));
    fence.extend(1);
    await until("the guard stops it", async () => !(await runs(counting)));
    await fence.shut();
    fence.extend(60_000);
    assert.equal(await runs(counting), false, "more time alone lets nothing go on");
    await fence.open([]);
    await until("it goes on", () => runs(counting));
  });

  test("the guard keeps the time after its host process is killed or stopped", async (t) => {
    for (const how of ["SIGKILL", "SIGSTOP"] as const) {
      const node_id = nodeId(how.toLowerCase());
      const fence = fenceOf(t, node_id);
      const counting = machine(t, node_id, "m1");
      await until("it counts", () => runs(counting));
      const child = startProgram(t, "test/system/hosts-guarded.ts", [tempDir(), node_id, String(EXTENDED_MS)]);
      await child.until(/^extended/);
      await until("it counts on while its time lasts", () => runs(counting));
      child.signal(how);
      await until(`it stands still after ${how}`, async () => !(await runs(counting)));
      fence.extend(60_000);
      await fence.open([]);
      assert.ok(await until("it goes on", () => runs(counting)));
    }
  });
});
