/** M4: the platform is killed at any moment; machines that run go on, and nothing is left behind. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { random, runs, seed } from "../support.ts";
import { leftBehind } from "./leaks.ts";
import { type Caller, realPlatform } from "./runc-support.ts";

const KILLS = runs(4, 30, 300);
const STEADY = runs(3, 10, 10);
const BUSY = runs(3, 10, 10);
const MACHINES = "/v1/apps/web/machines";
const VERBS = ["start", "stop", "suspend", "restart"];

/** Counts, so that a line that is lost shows. */
const COUNTER = ["sh", "-c", "i=0; trap 'exit 0' TERM; while :; do echo n $i; i=$((i+1)); sleep 0.2; done"];
const config = { image: "busybox", init: { exec: COUNTER }, restart: { policy: "no" } };
const skip = realMachinesMissing();

test("after repeated kills the platform has lost no machine and leaks nothing (M4)", { skip }, async (t) => {
  const next = random(seed(t));
  const platform = realPlatform(t);
  const { data_dir } = platform;
  busyboxLayer(join(platform.images, "busybox"));
  let caller = await platform.start();
  await caller.ask("POST", "/v1/apps", { app_name: "web" });
  const steady = await Promise.all(Array.from({ length: STEADY }, () => started(caller)));
  const pids = steady.map((id) => pidOf(data_dir, id));

  const busy: string[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const meddlers = [meddle(caller, busy, next), meddle(caller, busy, next)];
    await delay(100 + Math.floor(next() * 900));
    await platform.kill();
    await Promise.all(meddlers);
    caller = await platform.start();
    const found = steady.map((id) => pidOf(data_dir, id));
    assert.deepEqual(found, pids, "machines that run are left alone");
    for (const pid of pids) process.kill(pid, 0);
  }

  await unbroken(caller, steady);
  for (const id of [...busy, ...steady]) {
    const settled = await caller.ask("GET", `${MACHINES}/${id}/wait?state=settled&timeout=120`);
    assert.equal(settled?.status, 200, `${id} settles`);
    const state = (await caller.ask("GET", `${MACHINES}/${id}`))?.body["state"];
    assert.equal(state === "started", isRunning(data_dir, id), `${id} is ${String(state)}, and the kernel agrees`);
  }
  await caller.ask("DELETE", "/v1/apps/web?force=true");
  await platform.stop();
  assert.deepEqual(await leftBehind(platform.installation(), "driver is closed"), {});
  t.diagnostic(`${KILLS} kills among ${STEADY + busy.length} machines, 0 interrupted, 0 leaked`);
});

/** Makes machines and does things to them until the platform is gone. */
async function meddle(caller: Caller, busy: string[], next: () => number): Promise<void> {
  const pick = (list: readonly string[]): string => list[Math.floor(next() * list.length)] ?? "";
  for (;;) {
    const create = busy.length < BUSY;
    const path = create ? MACHINES : `${MACHINES}/${pick(busy)}/${pick(VERBS)}`;
    const answer = await caller.ask("POST", path, create ? { config } : {});
    if (!answer) return;
    if (create && answer.status === 200) busy.push(String(answer.body["id"]));
  }
}

async function started(caller: Caller): Promise<string> {
  const made = await caller.ask("POST", MACHINES, { config });
  const id = String(made?.body["id"]);
  const wait = await caller.ask("GET", `${MACHINES}/${id}/wait?state=started&timeout=120`);
  assert.equal(wait?.status, 200, JSON.stringify(wait?.body));
  return id;
}

interface Seen {
  state: string;
  pid: number;
}

const recordOf = (data_dir: string, id: string): Seen | undefined => {
  try {
    return JSON.parse(readFileSync(join(data_dir, "machines", id, "machine.json"), "utf8")) as Seen;
  } catch {
    return undefined;
  }
};

const pidOf = (data_dir: string, id: string): number =>
  recordOf(data_dir, id)?.pid ?? assert.fail(`nothing is written down of ${id}`);

function isRunning(data_dir: string, id: string): boolean {
  const record = recordOf(data_dir, id);
  if (record?.state !== "running") return false;
  try {
    return process.kill(record.pid, 0);
  } catch {
    return false;
  }
}

/** Every number that was counted is in the log, once, through all the kills. */
async function unbroken(caller: Caller, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const answer = await caller.ask("GET", `${MACHINES}/${id}/logs?tail=10000`);
    const lines = (answer?.body["lines"] ?? []) as { message: string }[];
    const numbers = lines.map(({ message }) => Number(/^n (\d+)$/.exec(message)?.[1]));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
      `the log of ${id} has every line`,
    );
    assert.ok(numbers.length > KILLS);
  }
}
