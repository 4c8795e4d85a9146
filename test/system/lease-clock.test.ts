/** Leases in a real process whose wall clock is moved under it (L3). */
import assert from "node:assert/strict";
import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tempDir, until, within } from "../support.ts";
import { startDaemon } from "./daemon.ts";

const [library] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");
const skip = library === undefined && "libfaketime is not installed (package faketime)";
const TTL_S = 3;
const JUMPS = { "an hour back": "-3600", "an hour ahead": "+3600", "two years ahead": "+63072000", "to now": "+0" };

test("a lease has one holder and lasts its ttl, however the wall clock jumps", { skip }, async (t) => {
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
    // From before it was asked for, so that no answer that comes late makes it look short.
    let asked = 0;
    await until("it is free", async () => {
      asked = performance.now();
      return (await take()).status === 201;
    });
    writeFileSync(clock, `${offset}\n`);
    // The control of the test itself: the process really believes in another time.
    const after = await itsTime(name.replaceAll(" ", "-"));
    assert.ok(Math.abs(after - before) > 1_000_000, `${name}: the clock of the process moved`);
    before = after;
    const next = await until("it ends", async () => {
      const answer = await take();
      if (answer.status !== 201) assert.equal(answer.status, 409, name);
      return answer.status === 201 && answer;
    });
    const lasted = performance.now() - asked;
    assert.ok(lasted >= TTL_S * 1000, `${name}: a second holder after ${Math.round(lasted)} ms`);
    assert.ok(lasted < within(2 * TTL_S * 1000), `${name}: it lasts more than twice its time`);
    await call("DELETE", lease, undefined, { "svc-machine-lease-nonce": nonceOf(next.body) });
  }
});

const nonceOf = (body: Record<string, unknown>): string => (body["data"] as { nonce: string }).nonce;
