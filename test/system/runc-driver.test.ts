/** The runc driver passes the suite that every driver passes, with machines that are real. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { runtimeDriverSuite } from "#machines/driver.suite.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";

runtimeDriverSuite(
  "runc",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "hangar-runc-"));
    const node_id = randomBytes(8).toString("hex");
    const images = fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } });
    mkdirSync(join(dir, "data"));
    const options = {
      data_dir: join(dir, "data"),
      node_id,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: silentLog,
      images,
    };
    const driver = await openRuncDriver(options);
    return {
      driver,
      running: { image: "web", init: { exec: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"] } },
      ending: { config: { image: "web", init: { exec: ["sh", "-c", "exit 7"] } }, exit_code: 7 },
      writing: { config: { image: "web", init: { exec: ["sh", "-c", "echo spoken; sleep 100"] } }, text: "spoken" },
      reopen: () => openRuncDriver(options),
      async close() {
        await driver.close();
        await takeDown(options);
        rmSync(dir, { recursive: true, force: true });
      },
    };
  },
  realMachinesMissing(),
);
