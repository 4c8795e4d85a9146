/** Leases in a real process whose wall clock is moved under it (L3). */
import assert from "node:assert/strict";
import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { tempDir } from "../support.ts";
import { startDaemon } from "./daemon.ts";

const [library] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");
const skip = library === undefined && "libfaketime is not installed (package faketime)";
const TTL_S = 3;
const JUMPS = { "an hour back": "-3600", "an hour ahead": "+3600", "two years ahead": "+63072000", "to now": "+0" };

test("a lease has one holder and lasts as long as it should, however the wall clock jumps", { skip }, async (t) => {
  const dir = tempDir();
  const clock = join(dir, "clock");
  writeFileSync(clock, "+0\n");
  const { call } = await startDaemon(t, join(dir, "data"), [], {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  await call("POST", "/v1/apps", { app_name: "web" });
  /** What the process takes the time to be. */
  const itsTime = async (app_name: string): Promise<number> =>
    Number((await call("POST", "/v1/apps", { app_name })).body["created_at"]);
  const { body } = await call("POST", "/v1/apps/web/machines", { config: { image: "x" }, skip_launch: true });
  const lease = `/v1/apps/web/machines/${String(body["id"])}/lease`;
  const take = () => call("POST", lease, { ttl: TTL_S });

  let before = await itsTime("first");
  for (const [name, offset] of Object.entries(JUMPS)) {
    let held = await take();
    while (held.status !== 201) {
      await delay(20);
      held = await take();
    }
    const taken = performance.now();
    writeFileSync(clock, `${offset}\n`);
    let next = await take();
    // The control of the test itself: the process really believes in another time.
    const after = await itsTime(name.replaceAll(" ", "-"));
    assert.ok(Math.abs(after - before) > 1_000_000, `${name}: the clock of the process moved`);
    before = after;
    assert.equal(next.status, 409, `${name}: a second holder`);
    while (next.status !== 201) {
      assert.ok(performance.now() - taken < 2 * TTL_S * 1000, `${name}: it lasts more than twice its time`);
      await delay(20);
      next = await take();
    }
    const lasted = performance.now() - taken;
    assert.ok(lasted > (TTL_S - 0.5) * 1000, `${name}: it ended after ${Math.round(lasted)} ms`);
    await call("DELETE", lease, undefined, { "svc-machine-lease-nonce": nonceOf(next.body) });
  }
});

const nonceOf = (body: Record<string, unknown>): string => (body["data"] as { nonce: string }).nonce;
