/** The runc driver passes the suites that every driver passes, with machines that are real and each kind of suspend. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { type OpenedDriver, runtimeDriverSuite, suspendSuite } from "#machines/runtime/driver.suite.ts";
import { busyboxLayer, criuMissing, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";

/** One connection at a time; between two, the port is closed for a moment. */
const ECHO = "trap 'exit 0' TERM; while :; do nc -l -p 7000 -e cat & wait; done";

const open = (suspend: "auto" | "freeze") => async (): Promise<OpenedDriver> => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-runc-"));
  const node_id = randomBytes(8).toString("hex");
  const images = fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } });
  mkdirSync(join(dir, "data"));
  const where = { data_dir: join(dir, "data"), node_id, memory_key: MEMORY_KEY };
  const options = { ...where, clock: systemClock, log: silentLog, images, suspend };
  const driver = await openRuncDriver(options);
  return {
    driver,
    running: { image: "web", init: { exec: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"] } },
    ending: { config: { image: "web", init: { exec: ["sh", "-c", "exit 7"] } }, exit_code: 7 },
    writing: { config: { image: "web", init: { exec: ["sh", "-c", "echo spoken; sleep 100"] } }, text: "spoken" },
    listening: { config: { image: "web", init: { exec: ["sh", "-c", ECHO] } }, port: 7000 },
    reopen: () => openRuncDriver(options),
    async close() {
      await driver.close();
      await takeDown(options);
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

const skip = realMachinesMissing();
runtimeDriverSuite("runc", open("auto"), skip);
suspendSuite("runc", "snapshot", open("auto"), skip ?? criuMissing());
suspendSuite("runc", "freeze", open("freeze"), skip);
