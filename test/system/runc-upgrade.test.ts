/** A later version takes over the machines of the one before, which refuses what the later one wrote. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs, until } from "../support.ts";
import { type Child, ROOT, startProgram } from "./child.ts";
import { leftBehind, nodeIdOf } from "./leaks.ts";
import { type Caller, callerOf, must } from "./runc-support.ts";

const COUNT = runs(2, 20, 20);
const MACHINES = "/v1/apps/web/machines";
const COUNTER = ["sh", "-c", "i=0; trap 'exit 0' TERM; while :; do echo n $i; i=$((i+1)); sleep 0.2; done"];
const NEWER =
  /^hangar: the database was written by a newer version \(migration \d+, this version knows \d+\); start that/;
const [TODAY, TOMORROW] = ["src/main.ts", "test/system/next-version.ts"];

class House {
  readonly data_dir: string;
  readonly #later: { after(end: () => unknown): void };

  constructor(t: TestContext) {
    const dir = mkdtempSync(join(tmpdir(), "hangar-upgrade-"));
    this.data_dir = join(dir, "data");
    const ends: (() => unknown)[] = [];
    this.#later = { after: (end) => void ends.push(end) };
    t.after(async () => {
      for (const end of ends) await end();
      if (existsSync(join(this.data_dir, "node_id")))
        await takeDown({ ...this.installation(), clock: systemClock, log: silentLog });
      rmSync(dir, { recursive: true, force: true });
    });
  }

  installation = () => ({ data_dir: this.data_dir, node_id: nodeIdOf(this.data_dir) });

  /** A version as a process of its own, with these words before its settings. */
  program(version: string, ...verb: string[]): Child {
    const settings = ["--data-dir", this.data_dir, "--listen", "127.0.0.1:0", "--driver", "runc"];
    return startProgram(this.#later, version, [...verb, ...settings]);
  }

  async start(version: string, ...verb: string[]): Promise<{ child: Child; caller: Caller }> {
    const child = this.program(version, ...verb);
    const base_url = / API +(\S+)/.exec(await child.until(/^ +API /))?.[1] ?? "";
    return { child, caller: callerOf(base_url, readFileSync(join(this.data_dir, "token"), "utf8").trim()) };
  }

  pidOf(id: string): number {
    const { pid } = JSON.parse(readFileSync(join(this.data_dir, "machines", id, "machine.json"), "utf8")) as {
      pid: number;
    };
    return process.kill(pid, 0) ? pid : 0;
  }
}

async function makeOne(caller: Caller): Promise<string> {
  const config = { image: "hangar/hello", init: { exec: COUNTER }, guest: { cpus: 1, memory_mb: 256 } };
  const id = String((await must(caller, "POST", MACHINES, { config }))["id"]);
  await must(caller, "GET", `${MACHINES}/${id}/wait?state=started&timeout=120`);
  return id;
}

async function numbers(caller: Caller, id: string): Promise<number[]> {
  const { lines = [] } = await must(caller, "GET", `${MACHINES}/${id}/logs?tail=10000`);
  return (lines as { message: string }[]).map(({ message }) => Number(/^n (\d+)$/.exec(message)?.[1]));
}

/** Each machine counts on, has left out nothing, and is written down as what it is. */
async function unbroken(caller: Caller, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const before = (await numbers(caller, id)).length;
    const found = await until(`${id} counts on`, async () => {
      const now = await numbers(caller, id);
      return now.length > before && now;
    });
    const whole = found.map((_, index) => index);
    assert.deepEqual(found, whole, `${id} was never begun anew`);
    assert.equal((await must(caller, "GET", `${MACHINES}/${id}`))["state"], "started");
  }
}

async function upgrade(t: TestContext): Promise<void> {
  const house = new House(t);
  const today = await house.start(TODAY);
  await must(today.caller, "POST", "/v1/apps", { app_name: "web" });
  const ids: string[] = [];
  for (let n = 0; n < COUNT; n++) ids.push(await makeOne(today.caller));
  const pids = ids.map((id) => house.pidOf(id));
  const same = (when: string): void =>
    assert.deepEqual(
      ids.map((id) => house.pidOf(id)),
      pids,
      when,
    );

  // In place of the running one, without a moment in between.
  const first = await house.start(TOMORROW, "replace");
  await today.child.ended;
  same("the machines are the same after the later version came");
  await unbroken(first.caller, ids);
  await must(first.caller, "DELETE", `${MACHINES}/${await makeOne(first.caller)}?force=true`);

  // Back again, while the later one runs: it is refused, and the later one does not even notice.
  const back = house.program(TODAY, "replace");
  assert.equal((await back.ended).code, 1);
  assert.match(back.complaints, NEWER);
  await unbroken(first.caller, ids);

  // After a crash of the later one, as somebody might who thinks that it is to blame.
  await first.child.kill();
  const alone = house.program(TODAY);
  assert.equal((await alone.ended).code, 1);
  assert.match(alone.complaints, NEWER);
  assert.equal(alone.complaints.trimEnd().split("\n").length, 1, "one line, not a stack");
  const copy = spawnSync(
    process.execPath,
    ["src/main.ts", "backup", join(house.data_dir, "copy"), "--data-dir", house.data_dir],
    { cwd: ROOT, encoding: "utf8" },
  );
  assert.notEqual(copy.status, 0);
  assert.match(copy.stderr, NEWER, "nor does it make a backup of what it does not know");
  same("machines do not mind being refused a platform");

  const second = await house.start(TOMORROW);
  same("the machines are the same after a crash of the later version");
  await unbroken(second.caller, ids);
  await must(second.caller, "DELETE", "/v1/apps/web?force=true");
  second.child.signal("SIGTERM");
  await second.child.ended;
  assert.deepEqual(await leftBehind(house.installation(), "driver is closed"), {});
  t.diagnostic(`${COUNT} machines through 3 changes of the platform, 0 restarted; the version before refused 3 times`);
}

suite("upgrade of the platform", { skip: realMachinesMissing() }, () => {
  test("a newer version takes over running machines, and the older one refuses its data (O4)", upgrade);
});
