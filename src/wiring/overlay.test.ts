import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ipv4Claims } from "#drivers/net/ipv4-claims.ts";
import { blockNet } from "#network/ipv4-blocks.ts";
import { tempDir } from "../../test/support.ts";
import { ownBlock } from "./overlay.ts";

const claims_dir = tempDir();

function aPlatform(name: string): Ipv4Claims {
  const data_dir = join(tempDir(), "data");
  mkdirSync(data_dir);
  return new Ipv4Claims(data_dir, createHash("sha256").update(name).digest(), claims_dir);
}

/** Two platforms that begin to look at the same block. */
function rivals(): [Ipv4Claims, Ipv4Claims] {
  const seen = new Map<number | undefined, Ipv4Claims>();
  for (let n = 0; ; n++) {
    const platform = aPlatform(`platform ${n}`);
    const [first] = platform.free();
    const other = seen.get(first);
    if (other) return [other, platform];
    seen.set(first, platform);
  }
}

test("of two platforms that choose the same block of IPv4 addresses at the same time one takes another", async () => {
  const [one, other] = rivals();
  const chosen: number[] = [];
  const both = Promise.withResolvers<void>();
  // Both have decided before either has claimed.
  const store = {
    async takeBlock(_: string, free: readonly number[]) {
      const [block = -1] = free;
      chosen.push(block);
      if (chosen.length === 2) both.resolve();
      await both.promise;
      return block;
    },
  } as unknown as Parameters<typeof ownBlock>[1];
  const [a, b] = await Promise.all([ownBlock(one, store, "n1"), ownBlock(other, store, "n2")]);
  assert.equal(chosen[0], chosen[1], "they chose the same one first");
  assert.ok(a !== undefined && b !== undefined && a !== b);
  assert.equal(one.holds(blockNet(b)), false);
  assert.equal(other.holds(blockNet(a)), false);
});
