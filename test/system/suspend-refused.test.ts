/** A machine that CRIU cannot dump, python3 from Debian with an open pidfd: it is frozen in memory instead, and says why. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { type DebianPlatform, debianPlatform } from "./debian-platform.ts";

const PROGRAM = `
import os, signal, sys
signal.signal(signal.SIGINT, lambda number, frame: sys.exit(0))
fd = os.pidfd_open(os.getpid())
print("ready", flush=True)
while True:
    signal.pause()
`;
const WHY = /^frozen in memory: \S/;
const configOf = (more: object = {}): object => ({
  image: "debian",
  init: { exec: ["/usr/bin/python3", "-c", PROGRAM] },
  restart: { policy: "no" },
  ...more,
});

suite("suspend refused by CRIU", { skip: realMachinesMissing() ?? packagesMissing(["python3"]) }, () => {
  let debian: DebianPlatform;
  before(async () => {
    debian = await debianPlatform(["python3"], { HANGAR_AUTOSTOP_IDLE: "1" });
  });
  after(() => debian.close());

  /** Why the machine is frozen, as its events have it. */
  const reasonOf = async (id: string): Promise<string | undefined> =>
    (await debian.events(id)).find(({ status }) => status === "suspended")?.request?.reason;
  const hangar = (line: string): Promise<{ status: number; stdout: string; stderr: string }> => {
    const env = { HOME: tempDir(), HANGAR_DATA_DIR: debian.platform.data_dir };
    return shell(`"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`, { cwd: ROOT, ...env });
  };

  test("the machine is frozen instead, with the reason in event, CLI and explain, and resumes", async () => {
    const id = await debian.machine(configOf());
    await debian.logged(id, "ready");
    const { status, stdout, stderr } = await hangar(`machines suspend ${id}`);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /is suspended: frozen in memory: \S/);
    assert.match((await reasonOf(id)) ?? "", WHY);
    assert.match((await hangar(`machines explain ${id}`)).stdout, /frozen in memory/);
    assert.match((await hangar(`machines events ${id}`)).stdout, /frozen in memory/);
    assert.equal((await hangar(`machines start ${id}`)).status, 0);
    const events = await debian.events(id);
    assert.equal(events.find(({ status }) => status === "started")?.request?.["resumed"], true);
  });

  test("a suspend by autostop has the reason, too", async () => {
    await debian.ask("POST /ip_assignments", { type: "shared_v4" });
    const ports = [{ port: await freePort(), handlers: ["http"] }];
    const services = [{ protocol: "tcp", internal_port: 8080, autostop: "suspend", ports }];
    const id = await debian.machine(configOf({ services }));
    await until(
      "the proxy has suspended it",
      async () => (await debian.ask(`GET /machines/${id}`)).state === "suspended",
    );
    assert.match((await reasonOf(id)) ?? "", WHY);
  });
});
