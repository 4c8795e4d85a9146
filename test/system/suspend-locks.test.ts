/** Locks of programs through a suspend: what CRIU loses is frozen instead, what it keeps is there after the resume. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { processesIn } from "#drivers/runtime/runc/cgroup.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { layoutOf, pathsOf } from "#drivers/runtime/runc/layout.ts";
import { heldLocks } from "#drivers/runtime/runc/suspend/file-locks.ts";
import { aLaunchIn, resumedOf } from "#machines/fixtures.ts";
import type { Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, criuMissing, fixtureImages, MEMORY_KEY, programLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { PYTHON, pythonLayer } from "./python-layer.ts";
import { Warnings } from "./warnings.ts";

const never = new AbortController().signal;

/** SQLite, with a connection that stays open, as servers have it. It answers with the number of rows that it sees. */
const SQLITE = `const { DatabaseSync } = require("node:sqlite"); const db = new DatabaseSync("/root/app.db");
db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (who TEXT); INSERT INTO t VALUES ('before')");
require("net").createServer((s) => s.on("error", () => {}).end(String(db.prepare("SELECT count(*) AS n FROM t").get().n)))
  .listen(8080, "::");`;
/** Another process, as a person's in a terminal. */
const OTHER = `const db = new (require("node:sqlite").DatabaseSync)("/root/app.db", { timeout: 5000 });
db.exec("INSERT INTO t VALUES ('another')"); console.log(db.prepare("SELECT count(*) AS n FROM t").get().n,
db.prepare("PRAGMA integrity_check").get().integrity_check)`;
/** As a daemon locks its pid file: a file that nobody maps. */
const PID_FILE = `import fcntl, time
file = open("/root/daemon.pid", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(100000)`;

suite("locks of a suspended machine", { skip: realMachinesMissing() ?? criuMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-locks-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const warnings = new Warnings();
  let driver: RuntimeDriver;

  before(async () => {
    mkdirSync(installation.data_dir);
    const layers = [busyboxLayer(join(dir, "busybox")), programLayer(join(dir, "node"), process.execPath, "node")];
    if (existsSync(PYTHON)) layers.push(pythonLayer(join(dir, "python")));
    const images = fixtureImages({ programs: { layers } });
    const parts = { clock: systemClock, log: warnings.log, images, memory_key: MEMORY_KEY } as const;
    driver = await openRuncDriver({ ...installation, ...parts });
  });

  after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    rmSync(dir, { recursive: true, force: true });
  });

  const start = async (exec: string[]): Promise<{ launch: Launch; ref: Ref }> => {
    const launch = aLaunchIn(installation.node_id, { image: "programs", guest: { memory_mb: 512 }, init: { exec } });
    const { handle } = await driver.start(launch, never);
    return { launch, ref: { id: launch.id, boot: launch.boot, handle } };
  };

  const locksOf = ({ id }: Launch) =>
    heldLocks(processesIn(pathsOf(layoutOf(installation.data_dir, installation.node_id), id).cgroup));

  test("one with an open SQLite database is frozen: another process that opens it afterwards does no harm", async () => {
    const { launch, ref } = await start(["node", "-e", SQLITE]);
    const listens = () => driver.probe(ref, { type: "tcp", port: 8080 }, AbortSignal.timeout(10_000));
    await until("it has opened the database", async () => (await listens()).passing, { every_ms: 50 });
    assert.match(locksOf(launch).lost ?? "", /app\.db-shm$/);
    const { handle, kind, reason } = await driver.suspend(ref, never);
    assert.equal(kind, "freeze");
    assert.match(reason ?? "", /would lose the locks on .*app\.db-shm, which a program has mapped/);
    const resumed = { ...ref, handle: resumedOf(await driver.resume(launch, handle, never)).handle };
    const other = await driver.exec(resumed, { command: ["node", "-e", OTHER], timeout_ms: 30_000 }, never);
    assert.match(other.stdout, /^2 ok$/m, other.stderr);
    const seen = await driver.exec(resumed, { command: ["nc", "::1", "8080"], timeout_ms: 30_000 }, never);
    assert.equal(seen.stdout, "2", "the first process sees what the other wrote");
    await driver.destroy(launch.id, never);
  });

  test("a lock on a file that is not mapped is in the snapshot, and held after the resume", {
    skip: existsSync(PYTHON) ? false : `there is no ${PYTHON}`,
  }, async () => {
    const { launch, ref } = await start(["python3", "-c", PID_FILE]);
    await until("it has the lock", () => Promise.resolve(locksOf(launch).any), { every_ms: 50 });
    assert.equal(locksOf(launch).lost, undefined);
    const { handle, kind, reason } = await driver.suspend(ref, never);
    assert.equal(kind, "snapshot", `${reason} ${warnings.text()}`);
    resumedOf(await driver.resume(launch, handle, never));
    assert.equal(locksOf(launch).any, true);
    await driver.destroy(launch.id, never);
  });
});
