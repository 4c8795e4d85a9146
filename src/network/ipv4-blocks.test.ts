import assert from "node:assert/strict";
import { test } from "node:test";
import { blockNet, isRouted, LONE_BLOCK, machineIpv4, processIpv4, SHARED_BLOCKS } from "./ipv4-blocks.ts";

test("blocks of IPv4 addresses do not overlap, and stay in 100.64.0.0/10", () => {
  assert.equal(machineIpv4(LONE_BLOCK, 5), "100.96.0.5");
  assert.equal(blockNet(0), "100.64.0.0/17");
  assert.equal(processIpv4(0), "100.64.127.255");
  assert.equal(blockNet(1), "100.64.128.0/17");
  assert.equal(processIpv4(127), "100.127.255.255");
  assert.equal(new Set(SHARED_BLOCKS.map(blockNet)).size, 127);
});

test("only addresses of a process's own block are routed between hosts", () => {
  assert.equal(isRouted(machineIpv4(LONE_BLOCK, 0)), false);
  assert.equal(isRouted(machineIpv4(LONE_BLOCK, 28_000)), false);
  for (const block of SHARED_BLOCKS) assert.ok(isRouted(machineIpv4(block, 28_000)), String(block));
});
