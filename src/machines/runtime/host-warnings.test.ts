import assert from "node:assert/strict";
import { test } from "node:test";
import { hostWarnings } from "./host-warnings.ts";

const PROBLEM = "the host has no swap (swapon --show lists none)";
const driver = (swap_problem?: string, sqlite_problem?: string) => ({
  capabilities: () => ({
    suspend: "snapshot" as const,
    ...(swap_problem === undefined ? {} : { swap_problem }),
    ...(sqlite_problem === undefined ? {} : { sqlite_problem }),
  }),
});
const WITH_SWAP = { image: "web", init: { swap_size_mb: 512 } };
const TOLD = [`config.init.swap_size_mb: the machine gets no swap: ${PROBLEM}`];

test("swap on a host without swap gives a warning", () => {
  assert.deepEqual(hostWarnings(WITH_SWAP, undefined, driver(PROBLEM)), TOLD);
  assert.deepEqual(hostWarnings(WITH_SWAP, {}, driver(PROBLEM)), TOLD, "the host said nothing of itself");
});

test("with several hosts, the swap of the machine's own host counts", () => {
  assert.deepEqual(hostWarnings(WITH_SWAP, { swap: PROBLEM }, driver()), TOLD);
  assert.deepEqual(hostWarnings(WITH_SWAP, { swap: "yes" }, driver(PROBLEM)), []);
});

test("no warning is given where there is swap or the config wants none", () => {
  assert.deepEqual(hostWarnings(WITH_SWAP, undefined, driver()), []);
  assert.deepEqual(hostWarnings({ image: "web" }, undefined, driver(PROBLEM)), []);
  assert.deepEqual(hostWarnings({ image: "web", init: { swap_size_mb: 0 } }, undefined, driver(PROBLEM)), []);
});

test("a SQLite node on a host that runs none, or is of an older version, gives a warning", () => {
  const config = { image: "web", sqlite: { dir: "/data" } };
  const told = (why: string) => [
    `config.sqlite: no node runs in the machine, so its databases are not replicated: ${why}`,
  ];
  assert.deepEqual(hostWarnings(config, undefined, driver(undefined, "it is simulated")), told("it is simulated"));
  assert.deepEqual(
    hostWarnings(config, { version: "0.1.0" }, driver()),
    told("its host runs Hangar 0.1.0, which has none"),
  );
  assert.deepEqual(hostWarnings(config, { version: "0.2.0", sqlite: "yes" }, driver()), []);
  assert.deepEqual(hostWarnings(config, undefined, driver()), []);
  assert.deepEqual(hostWarnings({ image: "web" }, { version: "0.1.0" }, driver()), []);
});
