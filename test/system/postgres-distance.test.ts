/**
 * A database that is far away: what a request costs is the number of times it waits for an answer. The relay counts
 * them, and holds every piece back, so that what is sent together is seen to be.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { type Relay, startRelay } from "../relay.ts";
import { runs, tempDir, within } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const DELAY_MS = 10;

interface Case {
  name: string;
  ask(): Promise<{ status: number }>;
  trips: number;
}

/** Of several tries the one at a quarter: what the platform does beside them falls into some, and is counted, too. */
async function usual(relay: Relay, { ask, name }: Case, tries: number): Promise<{ trips: number; ms: number }> {
  const counted: { trips: number; ms: number }[] = [];
  for (let index = 0; index < tries; index++) {
    relay.trips();
    const began = performance.now();
    const { status } = await ask();
    const ms = performance.now() - began;
    counted.push({ trips: relay.trips(), ms });
    assert.ok(status < 300, `${name}: ${status}`);
  }
  const low = (of: "trips" | "ms"): number => counted.map((one) => one[of]).sort((a, b) => a - b)[tries >> 2] ?? 0;
  return { trips: low("trips"), ms: low("ms") };
}

const cases = ({ call }: Daemon, machine: string): Case[] => {
  const path = `/v1/apps/web/machines/${machine}`;
  let n = 0;
  return [
    { name: "read a machine", trips: 1, ask: () => call("GET", path) },
    { name: "read metadata", trips: 1, ask: () => call("GET", `${path}/metadata`) },
    // The app first, then its machines.
    { name: "list machines", trips: 2, ask: () => call("GET", "/v1/apps/web/machines") },
    { name: "write metadata", trips: 2, ask: () => call("POST", `${path}/metadata/n`, { value: String(++n) }) },
    { name: "cordon", trips: 2, ask: () => call("POST", `${path}/${++n % 2 === 0 ? "cordon" : "uncordon"}`) },
    {
      name: "create a machine",
      trips: 2,
      ask: () => call("POST", "/v1/apps/web/machines", { config: { image: "web:1" }, skip_launch: true }),
    },
  ];
};

suite("PostgreSQL with latency", { skip: postgresMissing() }, () => {
  test("a read takes one round trip, a write at most two", async (t) => {
    const postgres = await startPostgres();
    t.after(() => postgres.stop());
    const url = new URL((await postgres.database()).replace("@/", "@localhost/"));
    const relay = await startRelay(`${url.searchParams.get("host")}/.s.PGSQL.5432`);
    t.after(() => relay.close());
    const database = `postgres://hangar@127.0.0.1:${relay.port}${url.pathname}`;
    const daemon = await startDaemon(t, tempDir(), [
      "--database",
      database,
      "--log-level",
      "error",
      "--host-lease",
      "300",
    ]);
    await daemon.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const wish = { config: { image: "web:1" }, skip_launch: true };
    const { body } = await daemon.call("POST", "/v1/apps/web/machines", wish);
    relay.delay_ms = DELAY_MS;
    for (const one of cases(daemon, String(body["id"]))) {
      // The first ones open connections and prepare statements.
      await usual(relay, one, 2);
      const { trips, ms } = await usual(relay, one, runs(12, 60));
      t.diagnostic(`${one.name}: ${trips} round trips, ${ms.toFixed(1)} ms at ${2 * DELAY_MS} ms of distance`);
      assert.ok(trips <= one.trips, `${one.name}: ${trips} round trips`);
      assert.ok(ms < within((one.trips + 1) * 2 * DELAY_MS + 20), `${one.name}: ${ms} ms`);
    }
  });
});
