import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { HealthReports, healthSeries } from "./health.ts";

suite("health reports of scrape targets", () => {
  test("close waits for reports being sent", async () => {
    const clock = virtualClock();
    let done = (): void => undefined;
    const sent = new Promise<void>((resolve) => {
      done = resolve;
    });
    const append = async () => {
      await sent;
      return { samples: 4, dropped: 0, problems: [], problem_count: 0 };
    };
    const reports = new HealthReports({ clock, engine: () => ({ append }), onError: assert.ifError });
    reports.end("org", healthSeries({ app: "web" }), clock.now());
    await clock.advance(1000);
    let closed = false;
    const closing = reports.close().then(() => {
      closed = true;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    assert.equal(closed, false);
    done();
    await closing;
  });
});
