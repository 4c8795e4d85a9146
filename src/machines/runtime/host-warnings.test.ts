import assert from "node:assert/strict";
import { test } from "node:test";
import { hostWarnings } from "./host-warnings.ts";

const PROBLEM = "the host has no swap (swapon --show lists none)";
const driver = (swap_problem?: string) => ({
  capabilities: () => ({ suspend: "snapshot" as const, ...(swap_problem === undefined ? {} : { swap_problem }) }),
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
