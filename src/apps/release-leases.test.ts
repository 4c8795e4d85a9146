import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { silentLog } from "#core/log.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { ReleaseLeases } from "./release-leases.ts";
import type { LeasedRelease } from "./release-store.ts";

suite("leases of releases", () => {
  test("a release is failed one lease after its renewal was first seen, whatever the wall clocks say", async () => {
    const clock = new MovingClock({ frozen: true });
    let leased: LeasedRelease[] = [{ app_id: "a1", version: 1, updated_at: 5, lease_ms: 60_000 }];
    const failed: unknown[] = [];
    const leases = new ReleaseLeases({
      store: {
        leased: async () => leased,
        putStatus: async (app_id, version, { status, failure }, _, renewed_at) => {
          failed.push([app_id, version, status, renewed_at]);
          assert.match(failure ?? "", /nothing was heard from the deployer for 60 s/);
          return true;
        },
      },
      clock,
      log: silentLog,
    });
    await leases.look();
    await clock.advance(59_999);
    await leases.look();
    assert.deepEqual(failed, []);
    leased = [{ app_id: "a1", version: 1, updated_at: 6, lease_ms: 60_000 }];
    await clock.advance(59_999);
    await leases.look();
    await clock.advance(59_999);
    await leases.look();
    assert.deepEqual(failed, [], "it was renewed");
    await clock.advance(1);
    await leases.look();
    assert.deepEqual(failed, [["a1", 1, "failed", 6]]);
  });
});
