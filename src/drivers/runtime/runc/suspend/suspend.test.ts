/** What is rare about suspending and running commands, with a script in runc's place and no kernel to clear. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { aMachine } from "#machines/fixtures.ts";
import { type ExitNotice, type Launch, SuspendRefused } from "#machines/runtime/driver.ts";
import { tempDir, until } from "../../../../../test/support.ts";
import { ContainerManager } from "../container-manager.ts";
import type { ContainerManagerParts } from "../container-manager-parts.ts";
import { execIn } from "../exec.ts";
import { type Layout, layoutOf } from "../layout.ts";
import { startOf } from "../process-table.ts";
import type { MachineRecord } from "../record.ts";
import { suspend } from "./suspend.ts";
import { Suspender } from "./suspender.ts";

const ID = "m1";
const never = new AbortController().signal;

/** Machines of a layout in a folder of ours; `script` is what runc does, with the folder of ends in $EXITS. */
function setup(t: TestContext, script: string) {
  const dir = tempDir("hangar-suspend");
  const at = (name: string): string => join(dir, name);
  const run = { run: dir, containers: at("m"), runc: at("runc-state"), exits: at("exits"), memory: at("memory") };
  const layout: Layout = { ...layoutOf(dir, `test-${process.pid}`), ...run };
  for (const folder of [layout.machines, layout.containers, layout.exits, layout.memory, join(layout.containers, ID)])
    mkdirSync(folder, { recursive: true });
  writeFileSync(at("runc"), `#!/bin/sh\nEXITS=${layout.exits}\n${script}\n`, { mode: 0o700 });
  const nothing = async (): Promise<void> => {};
  const network = { detach: nothing, attach: nothing, remove: nothing };
  const parts = {
    layout,
    runc: at("runc"),
    clock: systemClock,
    log: silentLog,
    network,
    bundles: { remove: nothing, limitIo() {} },
  };
  // Of the network and the bundles only what is called here is there: the real ones need a kernel of their own.
  const containers = new ContainerManager(parts as unknown as ContainerManagerParts);
  t.after(() => containers.close());
  return { containers, dir };
}

function record(change: Partial<MachineRecord>): MachineRecord {
  return { id: ID, boot: "b1", state: "exited", uid_base: 65_536 * 20, private_ip: "fdaa:1::2", layers: [], ...change };
}

/** A process that stands for the machine's first. */
function process1(t: TestContext): number {
  const child = spawn("sleep", ["1000"], { stdio: "ignore" });
  t.after(() => child.kill("SIGKILL"));
  return child.pid ?? assert.fail();
}

suite("failed suspends", { skip: process.platform === "linux" ? false : "the kernel is not Linux" }, () => {
  test("a machine that ends while its snapshot fails gives an exit notice", async (t) => {
    const pid = process1(t);
    const { containers } = setup(
      t,
      `kill -9 ${pid}; printf 137 > $EXITS/x.new; mv $EXITS/x.new $EXITS/${ID}; sleep 0.2; exit 1`,
    );
    containers.running(record({}), pid, startOf(pid));
    const heard: ExitNotice[] = [];
    containers.onExit((notice) => heard.push(notice));
    const criu = { bin: "/nowhere", version: "1" };
    await assert.rejects(
      suspend({ containers, criu, runc_version: "1" }, { id: ID, boot: "b1", handle: null }, never),
      SuspendRefused,
    );
    await until("its exit notice arrives", () => heard.length > 0);
    assert.deepEqual([heard[0]?.exit_code, containers.read(ID)?.state], [137, "exited"]);
  });

  test("a snapshot that this host cannot use is dropped, and the machine boots cold", async (t) => {
    const { containers } = setup(t, "echo runc version 1");
    containers.write(record({ state: "frozen", snapshot: { criu: "1", runc: "1", confined: {}, ports: [] } }));
    mkdirSync(containers.paths(ID).snapshot);
    const suspender = new Suspender(containers, () => Promise.reject(new Error("not at this moment")));
    const { id: _, ...machine } = aMachine();
    const launch = { ...machine, id: ID, boot: "b1", secrets: {}, keep_rootfs: true } as unknown as Launch;
    assert.ok("lost" in (await suspender.resume(launch, never)));
    assert.deepEqual([containers.read(ID)?.state, existsSync(containers.paths(ID).snapshot)], ["exited", false]);
  });
});

test("an aborted exec leaves no timer behind", {
  skip: process.platform === "linux" ? false : "the kernel is not Linux",
}, async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  // `--root DIR exec --process FILE --pid-file FILE ID`
  const { containers } = setup(t, 'echo $$ > "$7"; exec sleep 1000');
  const stop = new AbortController();
  const before = timers();
  const pid = process1(t);
  mkdirSync(containers.paths(ID).svc, { recursive: true });
  const command = { command: ["true"], timeout_ms: 600_000 };
  const work = execIn({ containers, record: { ...record({}), pid }, command, signal: stop.signal });
  setImmediate(() => stop.abort(new Error("gone")));
  await assert.rejects(work, /gone/);
  assert(timers() <= before, `${timers()} timers, ${before} before`);
});
