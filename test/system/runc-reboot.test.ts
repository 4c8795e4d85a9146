/** After a reboot of the host each machine is what its restart policy says, and has been started once. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { runs, until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { ownNetwork } from "./own-network.ts";
import { boxMissing, programsOf, RebootBox } from "./reboot-box.ts";
import { type Caller, must } from "./runc-support.ts";

const REBOOTS = runs(1, 3, 50);
const MACHINES = "/v1/apps/web/machines";
const WORDS = "came up";
/** Says so each time it is started, also into its volume when it has one. */
const PROGRAM = `echo ${WORDS}; [ ! -d /data ] || { echo ${WORDS} >> /data/boots; sync; }; trap 'exit 0' TERM; while :; do sleep 1 & wait; done`;

interface Case {
  restart?: { policy: "no" | "on-failure" | "always"; max_retries?: number };
  more?: object;
  /** Asked for before the first reboot, and what the machine is in then. */
  before?: [verb: "stop" | "suspend", state: string];
  /** What it is in after a reboot, and whether that was a start. */
  after: "started" | "stopped" | "suspended" | "destroyed";
}

const CASES: Record<string, Case> = {
  "by default": { after: "started" },
  always: { restart: { policy: "always" }, after: "started" },
  "on failure": { restart: { policy: "on-failure" }, after: "started" },
  "on failure, never again": { restart: { policy: "on-failure", max_retries: 0 }, after: "stopped" },
  no: { restart: { policy: "no" }, after: "stopped" },
  "no, and done with it": { restart: { policy: "no" }, more: { auto_destroy: true }, after: "destroyed" },
  "always, but stopped by hand": {
    restart: { policy: "always" },
    before: ["stop", "stopped"],
    after: "stopped",
  },
  "always, but suspended": {
    restart: { policy: "always" },
    before: ["suspend", "suspended"],
    after: "suspended",
  },
};

interface Known extends Case {
  id: string;
  name: string;
  /** How often it has been started. */
  boots: number;
}

const stateOf = async (caller: Caller, id: string): Promise<unknown> =>
  (await must(caller, "GET", `${MACHINES}/${id}`))["state"];

const config = ({ restart, more }: Case): object => ({
  image: "busybox",
  init: { exec: ["sh", "-c", PROGRAM] },
  ...(restart ? { restart } : {}),
  ...more,
});

/** A machine for each case, and one whose volume is kept. */
async function makeMachines(caller: Caller): Promise<Known[]> {
  await must(caller, "POST", "/v1/apps", { app_name: "web" });
  const volume = await must(caller, "POST", "/v1/apps/web/volumes", { name: "data", size_gb: 1 });
  const mounts = [{ volume: volume["id"], path: "/data" }];
  const cases = { ...CASES, "with a volume": { more: { mounts }, after: "started" as const } };
  return await Promise.all(
    Object.entries(cases).map(async ([name, one]: [string, Case]): Promise<Known> => {
      const { id } = await must(caller, "POST", MACHINES, { config: config(one) });
      const machine = { ...one, name, id: String(id), boots: 1 };
      await until(`${name} has come up`, async () => (await bootsOf(caller, machine.id)) === 1);
      return machine;
    }),
  );
}

/** Brings machines to where they are to be when the power goes. */
async function arrange(caller: Caller, machines: readonly Known[]): Promise<void> {
  for (const { id, name, before } of machines) {
    if (!before) continue;
    const [verb, wanted] = before;
    await must(caller, "POST", `${MACHINES}/${id}/${verb}`);
    await must(caller, "GET", `${MACHINES}/${id}/wait?state=settled&timeout=120`);
    assert.equal(await stateOf(caller, id), wanted, name);
  }
}

async function bootsOf(caller: Caller, id: string): Promise<number> {
  const { lines = [] } = await must(caller, "GET", `${MACHINES}/${id}/logs?tail=10000`);
  return (lines as { message: string }[]).filter(({ message }) => message === WORDS).length;
}

async function judge(caller: Caller, machines: readonly Known[]): Promise<void> {
  for (const machine of machines) {
    const { id, name, after } = machine;
    await until(`${name} is ${after}`, async () => (await stateOf(caller, id)) === after);
    if (after === "started") machine.boots++;
  }
  for (const { id, name, boots, after } of machines) {
    await until(`${name} has come up ${boots} times`, async () => (await bootsOf(caller, id)) >= boots);
    assert.equal(await bootsOf(caller, id), boots, `${name} is started once a reboot`);
    assert.equal(programsOf(id, WORDS).length, after === "started" ? 1 : 0, `${name} runs once, or not at all`);
  }
}

/** A second program that claims to be of the machine, as if it had been started twice. */
async function doubleOf(t: TestContext, id: string): Promise<ChildProcess> {
  const child = spawn("sh", ["-c", `: ${WORDS}; read line`], {
    env: { SVC_MACHINE_ID: id },
    stdio: ["pipe", "ignore", "ignore"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child;
}

/** A machine that is frozen in memory loses it with the power: it stays suspended, and its start says that it was cold. */
async function frozenInMemory(t: TestContext): Promise<void> {
  const box = new RebootBox(t, { HANGAR_SUSPEND: "freeze" });
  busyboxLayer(join(box.images, "busybox"));
  let caller = await box.boot();
  await must(caller, "POST", "/v1/apps", { app_name: "web" });
  const { id } = await must(caller, "POST", MACHINES, { config: config({ after: "suspended" }) });
  const machine = { name: "frozen", id: String(id), boots: 1, after: "suspended" as const };
  await until("it has come up", async () => (await bootsOf(caller, machine.id)) === 1);
  await arrange(caller, [{ ...machine, before: ["suspend", "suspended"] }]);
  assert.equal(programsOf(machine.id, WORDS).length, 1, "it is in memory");
  await box.powerOff();
  caller = await box.boot();
  await judge(caller, [machine]);
  await must(caller, "POST", `${MACHINES}/${machine.id}/start`);
  await until("it runs", async () => (await stateOf(caller, machine.id)) === "started");
  assert.equal(await bootsOf(caller, machine.id), 2);
  const events = (await must(caller, "GET", `${MACHINES}/${machine.id}/events`)) as unknown as Told[];
  const { resumed, reason = "" } = events.find(({ status }) => status === "started")?.request ?? {};
  assert.equal(resumed, false);
  assert.match(reason, /^booted cold: the host was restarted while it was suspended/);
}

interface Told {
  status: string;
  request?: { resumed?: boolean; reason?: string };
}

async function reboots(t: TestContext): Promise<void> {
  const box = new RebootBox(t);
  busyboxLayer(join(box.images, "busybox"));
  let caller = await box.boot();
  const machines = await makeMachines(caller);
  await arrange(caller, machines);
  const withVolume = machines.at(-1) ?? assert.fail();
  for (let reboot = 0; reboot < REBOOTS; reboot++) {
    // One that was asked for and never seen to run: it is begun again, not twice.
    const { id } = await must(caller, "POST", MACHINES, { config: config({ after: "started" }) });
    await box.powerOff();
    caller = await box.boot();
    await judge(caller, machines);
    await until("the late one runs", async () => (await stateOf(caller, String(id))) === "started");
    await until("it runs once", () => programsOf(String(id), WORDS).length === 1);
    await must(caller, "DELETE", `${MACHINES}/${String(id)}?force=true`);
  }
  const ran = await must(caller, "POST", `${MACHINES}/${withVolume.id}/exec`, { command: ["cat", "/data/boots"] });
  assert.equal(ran["stdout"], `${WORDS}\n`.repeat(REBOOTS + 1), "what it wrote before each reboot is in its volume");

  const frozen = machines.find(({ after }) => after === "suspended") ?? assert.fail();
  await must(caller, "POST", `${MACHINES}/${frozen.id}/start`);
  await until(`${frozen.name} goes on`, async () => (await stateOf(caller, frozen.id)) === "started");
  assert.equal(programsOf(frozen.id, WORDS).length, 1);
  // The control: a machine that is there twice is seen.
  const double = await doubleOf(t, withVolume.id);
  await until("a second one is counted", () => programsOf(withVolume.id, WORDS).length === 2);
  double.kill("SIGKILL");
  t.diagnostic(`${REBOOTS} reboots under ${machines.length} machines, each as its policy says, none twice`);
}

if (await ownNetwork(import.meta.filename)) {
  const skip = realMachinesMissing() ?? volumesMissing() ?? boxMissing();
  suite("host reboot", { skip }, () => {
    test("a machine frozen in memory stays suspended, boots cold and says why", frozenInMemory);

    test("machines are restarted by their restart policy, each once (O5)", reboots);
  });
}
