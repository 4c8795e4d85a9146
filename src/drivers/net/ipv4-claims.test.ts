/** Two platforms with several hosts on one host: each block of IPv4 addresses is routed to one of them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { claimsOf } from "#core/host-claims.ts";
import { blockNet, SHARED_BLOCKS } from "#network/ipv4-blocks.ts";
import { tempDir } from "../../../test/support.ts";
import { Ipv4Claims, releaseIpv4 } from "./ipv4-claims.ts";

function aBox() {
  const claims_dir = tempDir();
  return {
    claims_dir,
    claimed: () => claimsOf("ipv4", claims_dir).length,
    process(platform: string) {
      const data_dir = join(tempDir(), "data");
      mkdirSync(data_dir);
      const id = createHash("sha256").update(platform).digest();
      return Object.assign(new Ipv4Claims(data_dir, id, claims_dir), { data_dir });
    },
  };
}

suite("blocks of IPv4 addresses on one box", () => {
  test("a block that a platform has, or has a route to, is neither assigned nor routed by another", () => {
    const box = aBox();
    const [one, other] = [box.process("one"), box.process("other")];
    const [block = -1] = one.free();
    assert.equal(other.free().length, SHARED_BLOCKS.length);
    assert.equal(one.holds(blockNet(block)), true);
    assert.equal(one.holds(blockNet(block)), true, "it still has it");
    assert.equal(other.free().includes(block), false);
    assert.equal(other.holds(blockNet(block)), false);
    assert.equal(one.free().includes(block), true);
  });

  test("processes of one platform share its claims", () => {
    const box = aBox();
    const [one, sibling] = [box.process("one"), box.process("one")];
    const [block = -1] = one.free();
    assert.equal(one.holds(blockNet(block)), true);
    assert.equal(sibling.holds(blockNet(block)), true);
    assert.deepEqual(sibling.free(), one.free());
  });

  test("platforms search for free blocks from different starting points", () => {
    const box = aBox();
    const firsts = Array.from({ length: 20 }, (_, n) => box.process(`platform ${n}`).free()[0]);
    assert.ok(new Set(firsts).size > 10, String(firsts));
  });

  test("claims are released when an installation is removed, those of others stay", () => {
    const box = aBox();
    const [one, other] = [box.process("one"), box.process("other")];
    const [a = -1, b = -1] = one.free();
    assert.equal(one.holds(blockNet(a)) && one.holds(blockNet(b)), true);
    assert.equal(other.holds(blockNet(other.free()[0] ?? -1)), true);
    releaseIpv4(one.data_dir, box.claims_dir);
    assert.equal(box.claimed(), 1);
    assert.equal(other.holds(blockNet(a)), true);
  });
});
