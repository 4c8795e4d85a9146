/** The platform is killed inside a suspend, and inside a resume: the machine loses nothing of its memory. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { leftBehind } from "./leaks.ts";
import { type Caller, realPlatform } from "./runc-support.ts";

const MACHINES = "/v1/apps/web/machines";
/** Counts in its memory alone: a boot from cold begins at 0 again. */
const COUNTER = ["sh", "-c", "i=0; trap 'exit 0' TERM; while :; do echo n $i; i=$((i+1)); sleep 0.1; done"];
const config = { image: "busybox", init: { exec: COUNTER }, restart: { policy: "no" } };

/** What the driver has written down about the machine. */
function stateOf(data_dir: string, id: string): string {
  try {
    return (JSON.parse(readFileSync(join(data_dir, "machines", id, "machine.json"), "utf8")) as { state: string })
      .state;
  } catch {
    return "";
  }
}

const settled = async (caller: Caller, id: string): Promise<unknown> => {
  await caller.ask("GET", `${MACHINES}/${id}/wait?state=settled&timeout=120`);
  return (await caller.ask("GET", `${MACHINES}/${id}`))?.body["state"];
};

async function counted(caller: Caller, id: string): Promise<number[]> {
  const answer = await caller.ask("GET", `${MACHINES}/${id}/logs?tail=10000`);
  const lines = (answer?.body["lines"] ?? []) as { message: string }[];
  return lines.map(({ message }) => Number(/^n (\d+)$/.exec(message)?.[1]));
}

/** When the platform is killed, by what the driver has written down. A machine is frozen and thawed in a moment. */
const KILLED: Record<"auto" | "freeze", [verb: string, record: RegExp, then: RegExp][]> = {
  auto: [
    ["suspend", /^suspending$/, /^(suspended|started)$/],
    ["start", /^resuming$/, /^started$/],
  ],
  freeze: [
    ["suspend", /^(suspending|paused)$/, /^(suspended|started)$/],
    ["start", /^(resuming|running)$/, /^started$/],
  ],
};

suite("platform killed during an operation", { skip: realMachinesMissing() }, () => {
  for (const kind of ["auto", "freeze"] as const)
    test(`during a suspend and a resume: the machine continues where it was (suspend = ${kind})`, (t) => dies(t, kind));

  test("a machine frozen in memory stays suspended, and continues where it was", async (t) => {
    const platform = realPlatform(t, { HANGAR_SUSPEND: "freeze" });
    busyboxLayer(join(platform.images, "busybox"));
    let caller = await platform.start();
    await caller.ask("POST", "/v1/apps", { app_name: "web" });
    const id = String((await caller.ask("POST", MACHINES, { config }))?.body["id"]);
    await until("it counts", async () => (await counted(caller, id)).length > 3, { every_ms: 100 });
    await caller.ask("POST", `${MACHINES}/${id}/suspend`);
    assert.equal(await settled(caller, id), "suspended");
    const before = await counted(caller, id);
    await platform.kill();
    caller = await platform.start();
    assert.equal(await settled(caller, id), "suspended");
    assert.deepEqual(await counted(caller, id), before, "it stands still");
    const events = (await caller.ask("GET", `${MACHINES}/${id}/events`))?.body as unknown as Event[];
    const told = events.find(({ status }) => status === "suspended")?.request;
    assert.equal(told?.suspend, "freeze");
    assert.match(told?.reason ?? "", /^frozen in memory: \S/);
    await caller.ask("POST", `${MACHINES}/${id}/start`);
    assert.equal(await settled(caller, id), "started");
    await goesOn(caller, id);
    // One that is suspended is stopped and destroyed like any other.
    await caller.ask("POST", `${MACHINES}/${id}/suspend`);
    assert.equal(await settled(caller, id), "suspended");
    await caller.ask("POST", `${MACHINES}/${id}/stop`);
    assert.equal(await settled(caller, id), "stopped");
    await caller.ask("DELETE", "/v1/apps/web?force=true");
    await platform.stop();
    assert.deepEqual(await leftBehind(platform.installation(), "driver is closed"), {});
  });
});

interface Event {
  status: string;
  request?: { suspend?: string; reason?: string };
}

/** It counts, and has had every number once: it was never booted from cold. */
async function goesOn(caller: Caller, id: string): Promise<void> {
  const before = (await counted(caller, id)).length;
  await until("it counts on", async () => (await counted(caller, id)).length > before + 3, { every_ms: 100 });
  const numbers = await counted(caller, id);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index),
    "every number once: it was never booted from cold",
  );
}

async function dies(t: TestContext, kind: "auto" | "freeze"): Promise<void> {
  const platform = realPlatform(t, { HANGAR_SUSPEND: kind });
  const { data_dir } = platform;
  busyboxLayer(join(platform.images, "busybox"));
  let caller = await platform.start();
  await caller.ask("POST", "/v1/apps", { app_name: "web" });
  const id = String((await caller.ask("POST", MACHINES, { config }))?.body["id"]);
  const to = async (verb: string): Promise<unknown> => {
    await caller.ask("POST", `${MACHINES}/${id}/${verb}`);
    return await settled(caller, id);
  };
  assert.equal(await settled(caller, id), "started");
  // Once undisturbed: whether this host can suspend is found out now, and not under the knife.
  assert.equal(await to("suspend"), "suspended");
  assert.equal(await to("start"), "started");

  for (const [verb, record, then] of KILLED[kind]) {
    const asked = caller.ask("POST", `${MACHINES}/${id}/${verb}`);
    await until(`the driver is ${record}`, () => record.test(stateOf(data_dir, id)), { every_ms: 0 });
    await platform.kill();
    await asked;
    caller = await platform.start();
    assert.match(String(await settled(caller, id)), then, `killed while ${record}`);
    // It was suspended or let go on: a resume is only a resume after a suspend.
    if (verb === "suspend" && (await settled(caller, id)) === "started") assert.equal(await to("suspend"), "suspended");
  }
  await goesOn(caller, id);
  await caller.ask("DELETE", `${MACHINES}/${id}?force=true`);
  await caller.ask("DELETE", "/v1/apps/web?force=true");
  await platform.stop();
  assert.deepEqual(await leftBehind(platform.installation(), "driver is closed"), {});
}
