/** Machines that exhaust resources reach their own limits, and do not affect others. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { cgroupDirs, processesIn } from "#drivers/runtime/runc/cgroup.ts";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { runs, until } from "../support.ts";
import { leftBehind } from "./leaks.ts";
import { type Caller, must, type RealPlatform, realPlatform } from "./runc-support.ts";

const MACHINES = "/v1/apps/web/machines";
const ROUNDS = runs(1, 3, 100);
const MB = 1024 * 1024;
/** A log that is set aside, the one that is written, and what came between two looks of the monitor. */
const LOGS_AT_MOST = 2 * RUNC_LIMITS.log_bytes_alone + MB;
const STAY = "while :; do sleep 1; done";

interface Seen {
  caller: Caller;
  platform: RealPlatform;
  id: string;
  said(): Promise<string>;
}

interface Abuse {
  script: string;
  memory_mb?: number;
  /** Whether the bound was met, and is told in words or in numbers. */
  bounded(seen: Seen): Promise<boolean>;
}

const ABUSES: Record<string, Abuse> = {
  "more and more processes": {
    script: "while :; do sleep 1000 & done",
    memory_mb: 1024,
    bounded: async ({ said }) => /can't fork/.test(await said()),
  },
  "more and more memory": {
    script: "exec tail /dev/zero",
    async bounded({ caller, id }) {
      const events = (await must(caller, "GET", `${MACHINES}/${id}`))["events"] as Event[];
      return events.some(({ type, request }) => type === "exit" && request?.exit_event?.oom_killed === true);
    },
  },
  "the whole disk": {
    // Blocks that are taken and not written: the host's own disk is not what is tested here.
    script: `i=0; while fallocate -l 268435456 /f$i; do i=$((i+1)); done; ${STAY}`,
    bounded: async ({ said }) => /No space left on device/.test(await said()),
  },
  "a log without end": {
    script: "exec yes 'a line that says nothing, again and again, as fast as it can be written'",
    async bounded({ platform, id }) {
      const dir = join(platform.data_dir, "logs", id);
      const files = (existsSync(dir) ? readdirSync(dir) : []).map(
        (name) => statSync(join(dir, name), { throwIfNoEntry: false })?.size ?? 0,
      );
      const bytes = files.reduce((sum, size) => sum + size, 0);
      assert.ok(bytes <= LOGS_AT_MOST, `its logs hold ${bytes} bytes`);
      return files.length > 1;
    },
  },
  "every descriptor": {
    script: `awk 'BEGIN { for (i = 0; ; i++) print i > ("/tmp/" i) }'; ${STAY}`,
    bounded: async ({ said }) => /Too many open files/.test(await said()),
  },
  "every cycle": {
    script: `for i in 1 2 3 4; do while :; do :; done & done; ${STAY}`,
    // Held back by the kernel only when the box is idle enough, so what counts is that it may: one of the host's cores.
    async bounded({ platform, id }) {
      const cgroup = `${machinesCgroup(platform.installation().node_id)}/${id}`;
      return processesIn(cgroup).length > 4 && coresOf(cgroup) === 1;
    },
  },
};

/** How many cores a cgroup may use, by either version. */
function coresOf(path: string): number {
  const { cpu, unified } = cgroupDirs(path);
  const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8").trim() : "");
  const [quota, period] = cpu
    ? [read(join(cpu, "cpu.cfs_quota_us")), read(join(cpu, "cpu.cfs_period_us"))]
    : read(join(unified ?? "", "cpu.max")).split(" ");
  return Number(quota) / Number(period);
}

interface Event {
  type: string;
  request?: { exit_event?: { oom_killed?: boolean } };
}

async function make(caller: Caller, script: string, memory_mb = 256): Promise<string> {
  const config = {
    image: "busybox",
    init: { exec: ["sh", "-c", script] },
    restart: { policy: "no" },
    guest: { cpu_kind: "shared", cpus: 1, memory_mb },
  };
  return String((await must(caller, "POST", MACHINES, { config }))["id"]);
}

const saidBy = async (caller: Caller, id: string): Promise<string> => {
  const { lines = [] } = await must(caller, "GET", `${MACHINES}/${id}/logs?tail=100`);
  return (lines as { message: string }[]).map(({ message }) => message).join("\n");
};

/** The platform takes and gives, and the neighbour works, on its disk as well. */
async function answers(caller: Caller, neighbour: string, word: string): Promise<void> {
  const command = ["sh", "-c", `echo ${word} > /tmp/word && cat /tmp/word`];
  const ran = await must(caller, "POST", `${MACHINES}/${neighbour}/exec`, { command, timeout: 120 });
  assert.equal(ran["stdout"], `${word}\n`, JSON.stringify(ran));
  await must(caller, "POST", "/v1/apps/web/secrets/WORD", { value: word });
}

async function abuse(t: TestContext): Promise<void> {
  const platform = realPlatform(t);
  busyboxLayer(join(platform.images, "busybox"));
  const caller = await platform.start();
  await must(caller, "POST", "/v1/apps", { app_name: "web" });
  const neighbour = await make(caller, `echo came up; ${STAY}`);
  await must(caller, "GET", `${MACHINES}/${neighbour}/wait?state=started&timeout=120`);
  const pid = platform.pid();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [what, { script, memory_mb, bounded }] of Object.entries(ABUSES)) {
      const id = await make(caller, script, memory_mb);
      const seen = { caller, platform, id, said: () => saidBy(caller, id) };
      await until(`one that wants ${what} meets its bound`, () => bounded(seen), { every_ms: 100 });
      await answers(caller, neighbour, `word-${round}`);
      await must(caller, "DELETE", `${MACHINES}/${id}?force=true`);
      await must(caller, "GET", `${MACHINES}/${id}/wait?state=destroyed&timeout=120`);
    }
  }
  assert.equal(platform.pid(), pid);
  assert.equal(await saidBy(caller, neighbour), "came up", "the neighbour was never started again");
  await must(caller, "DELETE", "/v1/apps/web?force=true");
  await platform.stop();
  assert.deepEqual(await leftBehind(platform.installation(), "driver is closed"), {});
  t.diagnostic(`${Object.keys(ABUSES).join(", ")}: ${ROUNDS} times each, every one met its own bound`);
}

suite("machines that abuse their host", { skip: realMachinesMissing() }, () => {
  test("an abusive machine harms only itself: the platform and a neighbour go on (C5)", abuse);
});
