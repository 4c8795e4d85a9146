import { systemClock } from "#core/clock.ts";
import { runtimeDriverSuite } from "#machines/driver.suite.ts";
import { simDriver } from "./driver.ts";
import { SimWorld } from "./world.ts";

const ending = { config: { image: "x", env: { SIM_RUN_MS: "1", SIM_EXIT_CODE: "7" } }, exit_code: 7 };
const writing = { config: { image: "spoken" }, text: "spoken" };

runtimeDriverSuite("sim", async () => {
  const world = new SimWorld();
  const driver = simDriver({ clock: systemClock, world });
  const reopen = async () => simDriver({ clock: systemClock, world });
  return { driver, running: { image: "x" }, ending, writing, reopen, close: () => driver.close() };
});

// The platform's way: the world is empty after a restart, and handles tell what was there.
runtimeDriverSuite("sim, adopting", async () => {
  const driver = simDriver({ clock: systemClock });
  const reopen = async () => simDriver({ clock: systemClock, adopt: true });
  return { driver, running: { image: "x" }, ending, writing, reopen, close: () => driver.close() };
});
