import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { testPlatform } from "../../test/platform.ts";
import { Readiness } from "./readiness.ts";

const fine = async (): Promise<undefined> => undefined;

suite("readiness", () => {
  test("GET /readyz lists its checks without a token; GET /healthz reports that the process is up", async (t) => {
    const platform = await testPlatform(t);
    const { status, body } = await platform.ask("GET /readyz", { token: null });
    assert.equal(status, 200);
    assert.equal(body.ok, true);
    assert.deepEqual(body.checks, { database: "ok", executor: "ok", proxy: "ok" });
    assert.equal((await platform.ask("GET /healthz", { token: null })).status, 200);
  });

  test("a failing check is 503 with its reason, and a hanging check does not block the response", async () => {
    const never = new Promise<undefined>(() => {});
    const clock = { ...systemClock, sleep: async () => {} };
    const readiness = new Readiness(
      [
        { part: "executor", problem: fine },
        { part: "proxy", problem: async () => "no worker answers" },
        { part: "lease", problem: async () => assert.fail("a secret") },
      ],
      { ...systemClock, sleep: () => never },
    );
    const thrown: unknown = await readiness.answer().catch((error: unknown) => error);
    assert.ok(thrown instanceof ApiError);
    assert.equal(thrown.http, 503);
    assert.deepEqual(thrown.extras.facts, {
      ok: false,
      reasons: [
        { part: "proxy", reason: "no worker answers" },
        { part: "lease", reason: "it failed; the log says how" },
      ],
    });
    const hanging = new Readiness([{ part: "database", problem: () => never }], clock);
    assert.match((await hanging.problems())[0]?.reason ?? "", /did not answer within/);
  });

  test("concurrent callers share one check, and a later caller sees the new state", async () => {
    let now = 0;
    let looks = 0;
    const clock = { ...systemClock, monotonic: () => now };
    const problem = async (): Promise<string | undefined> => (++looks > 1 ? "gone" : undefined);
    const readiness = new Readiness([{ part: "database", problem }], clock);
    await Promise.all(Array.from({ length: 100 }, () => readiness.problems()));
    assert.equal(looks, 1);
    now += LIMITS.readiness_kept_ms + 1;
    assert.deepEqual(await readiness.problems(), [{ part: "database", reason: "gone" }]);
  });
});
