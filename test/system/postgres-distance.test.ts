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
    { name: "read an app", trips: 1, ask: () => call("GET", "/v1/apps/web") },
    { name: "write metadata", trips: 2, ask: () => call("POST", `${path}/metadata/n`, { value: String(++n) }) },
    { name: "cordon", trips: 2, ask: () => call("POST", `${path}/${++n % 2 === 0 ? "cordon" : "uncordon"}`) },
    {
      name: "create a machine",
      trips: 2,
      ask: () => call("POST", "/v1/apps/web/machines", { config: { image: "web:1" }, skip_launch: true }),
    },
  ];
};

/** What a list reads of each of its items, or of what it is a list of, when that has to be known first. */
const SECOND_TRIP = new Set([
  "/v1/orgs/{org_slug}/app_statuses",
  "/v1/apps/{app_name}/volumes/{volume_id}/snapshots",
  "/v1/registry/repositories",
]);

/** All lists of the API, as its own description names them. */
async function lists({ call }: Daemon, ids: Record<string, string>): Promise<Case[]> {
  const { body } = await call("GET", "/openapi.json");
  const paths = Object.entries(body["paths"] as Record<string, { get?: { parameters?: { name: string }[] } }>);
  return paths.flatMap(([path, { get }]): Case[] => {
    const url = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => ids[name] ?? whole);
    if (!get?.parameters?.some(({ name }) => name === "cursor") || url.includes("{") || NOT_HERE.has(path)) return [];
    // Otherwise some of them are streams.
    const ask: Case["ask"] = () => call("GET", url, undefined, { accept: "application/json" });
    return [{ name: `list ${path}`, trips: SECOND_TRIP.has(path) ? 2 : 1, ask }];
  });
}

/** Of a machine that runs, of metrics, and of a call that writes what it kept back before it reads. */
const NOT_HERE = new Set([
  "/v1/apps/{app_name}/machines/{machine_id}/ps",
  "/v1/orgs/{org_slug}/db_nodes",
  "/v1/oauth/audit",
]);

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
    const volume = (await daemon.call("POST", "/v1/apps/web/volumes", { name: "data", size_gb: 1 })).body;
    const ids = {
      org_slug: "personal",
      app_name: "web",
      machine_id: String(body["id"]),
      volume_id: String(volume["id"]),
    };
    const all = await lists(daemon, ids);
    assert.ok(all.length > 20, `${all.length} lists`);
    relay.delay_ms = DELAY_MS;
    for (const one of [...cases(daemon, ids.machine_id), ...all]) {
      // The first ones open connections and prepare statements.
      await usual(relay, one, 3);
      const { trips, ms } = await usual(relay, one, runs(12, 60));
      t.diagnostic(`${one.name}: ${trips} round trips, ${ms.toFixed(1)} ms at ${2 * DELAY_MS} ms of distance`);
      assert.ok(trips <= one.trips, `${one.name}: ${trips} round trips`);
      assert.ok(ms < within((one.trips + 1) * 2 * DELAY_MS + 20), `${one.name}: ${ms} ms`);
    }
  });
});
