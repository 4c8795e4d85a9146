import { systemClock } from "#core/clock.ts";
import { type OpenedDriver, runtimeDriverSuite, suspendSuite } from "#machines/runtime/driver.suite.ts";
import { simDriver } from "./driver.ts";
import { SimWorld } from "./world.ts";

const ending = { config: { image: "x", env: { SIM_RUN_MS: "1", SIM_EXIT_CODE: "7" } }, exit_code: 7 };
const listening = { config: { image: "x", env: { SIM_LISTEN: "7000" } }, port: 7000 };
const writing = { config: { image: "spoken" }, text: "spoken" };

const open = (running: OpenedDriver["running"]) => async (): Promise<OpenedDriver> => {
  const world = new SimWorld();
  const driver = simDriver({ clock: systemClock, world });
  const reopen = async () => simDriver({ clock: systemClock, world });
  return { driver, running, ending, writing, listening, reopen, close: () => driver.close() };
};

// As the platform does: the world is empty after a restart, and handles describe what was there.
const openAdopting = (running: OpenedDriver["running"]) => async (): Promise<OpenedDriver> => {
  const driver = simDriver({ clock: systemClock });
  const reopen = async () => simDriver({ clock: systemClock, adopt: true });
  return { driver, running, ending, writing, listening, reopen, close: () => driver.close() };
};

const plain = { image: "x" };
const frozen = { image: "x", env: { SIM_FREEZE: "set so" } };
for (const [name, opened] of Object.entries({ sim: open, "sim, adopting": openAdopting })) {
  runtimeDriverSuite(name, opened(plain));
  suspendSuite(name, "snapshot", opened(plain));
  suspendSuite(name, "freeze", opened(frozen));
}
