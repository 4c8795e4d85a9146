/**
 * A database that is far away: what a request costs is the number of times it waits for an answer. The relay counts
 * them, and holds every piece back, so that what is sent together is seen to be.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { type Furnished, furnished } from "../furnished.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { type Relay, startRelay } from "../relay.ts";
import { runs, tempDir, within } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const DELAY_MS = 10;
const TRIES = runs(20, 60);

interface Case {
  name: string;
  ask(): Promise<{ status: number }>;
  trips: number;
}

/** The platform's own work beside it falls into some tries, and is counted, too; a second try within the bounds shows what is usual. */
async function withinBounds(relay: Relay, { ask, name, trips }: Case): Promise<{ trips: number; ms: number }> {
  const most_ms = within((trips + 1) * 2 * DELAY_MS + 20);
  const tried: { trips: number; ms: number }[] = [];
  const good = () => tried.filter((one) => one.trips <= trips && one.ms < most_ms);
  // The first ones open connections and prepare statements.
  for (let index = 0; index < 2 + TRIES && good().length < 2; index++) {
    relay.trips();
    const began = performance.now();
    const { status } = await ask();
    const ms = performance.now() - began;
    if (index >= 2) tried.push({ trips: relay.trips(), ms });
    assert.ok(status < 300, `${name}: ${status}`);
  }
  const [, second] = good();
  const seen = tried.map((one) => `${one.trips} in ${one.ms.toFixed(0)} ms`).join(", ");
  assert.ok(second, `${name}: more than ${trips} round trips, or ${most_ms} ms: ${seen}`);
  return second;
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

/** Reads that are more than a question to the database, or are asked otherwise, each with the reason. */
const NOT_WALKED: Record<string, string> = {
  "/v1/apps/:app_name/machines/:machine_id/wait": "reads once more when it listens, so that it misses nothing",
  "/v1/apps/:app_name/machines/:machine_id/terminal": "a WebSocket",
  "/v1/apps/:app_name/machines/:machine_id/tunnel": "a WebSocket",
  "/v1/apps/:app_name/images/resolve": "asks a registry",
  "/v1/images/show": "asks a registry",
  "/v1/oauth/:provider/authorize": "sends a browser to the provider",
  "/v1/oauth/:provider/callback": "a browser comes back from the provider",
  "/v1/sprites/:sprite_name/check": "wakes the sprite, and runs a command in it",
  "/v1/sprites/:sprite_name/exec/:session_id": "a WebSocket",
  "/v1/sprites/:sprite_name/control": "a WebSocket",
  "/v1/sprites/:sprite_name/proxy": "a WebSocket",
  "/v1/sprites/:sprite_name/ports/watch": "a WebSocket",
  "/v1/sprites/:sprite_name/fs/watch": "a WebSocket",
  "/v1/sprites/:sprite_name/fs/read": "wakes the sprite, and runs a program in it",
  "/v1/sprites/:sprite_name/fs/list": "wakes the sprite, and runs a program in it",
  "/v1/sprites/:sprite_name/fs/stat": "wakes the sprite, and runs a program in it",
  "/v1/gateway/list": "for machines, which have tokens of another kind",
  "/v1/gateway/:provider/:connection_id/*": "for machines, which have tokens of another kind",
  "/v2/*": "a protocol of its own",
  "/git/*": "a protocol of its own",
};

/** What a read needs to be about something. */
const QUERIES: Record<string, string> = {
  "/prometheus/:org_slug/api/v1/query": "query=up",
  "/prometheus/:org_slug/api/v1/query_range": "query=up&start=0&end=60&step=15",
  "/prometheus/:org_slug/api/v1/format_query": "query=up",
  "/prometheus/:org_slug/api/v1/query_exemplars": "query=up",
  "/prometheus/:org_slug/api/v1/parse_query": "query=up",
  "/prometheus/:org_slug/api/v1/series": "match[]=up",
  "/prometheus/:org_slug/api/v1/export": "match[]=up",
  "/prometheus/:org_slug/federate": "match[]=up",
};

/** Every read of the API, as the table of routes has it: one that is added is walked, or named above. */
function reads({ rows, ask, url }: Furnished): Case[] {
  return rows.flatMap((row): Case[] => {
    if (row.method !== "GET" || row.access === "open" || NOT_WALKED[row.path] !== undefined) return [];
    const read = (name: string, query = ""): Case => {
      const path = url(row);
      const target = query ? `${path}${path.includes("?") ? "&" : "?"}${query}` : path;
      return { name, trips: 1, ask: () => ask(`GET ${target}`) };
    };
    return [read(row.path, QUERIES[row.path]), ...(row.pages ? [read(`${row.path} (a page)`, "limit=2")] : [])];
  });
}

/** A database behind a relay, and its address through it. */
async function farDatabase(t: TestContext): Promise<{ relay: Relay; url: string }> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const near = new URL((await postgres.database()).replace("@/", "@localhost/"));
  const relay = await startRelay(`${near.searchParams.get("host")}/.s.PGSQL.5432`);
  t.after(() => relay.close());
  return { relay, url: `postgres://hangar@127.0.0.1:${relay.port}${near.pathname}` };
}

async function holdToBounds(t: TestContext, relay: Relay, all: readonly Case[]): Promise<void> {
  relay.delay_ms = DELAY_MS;
  const failed: string[] = [];
  for (const one of all) {
    const done = withinBounds(relay, one).then(
      ({ trips, ms }) => `${one.name}: ${trips} round trips, ${ms.toFixed(1)} ms at ${2 * DELAY_MS} ms of distance`,
      (error: unknown) => {
        failed.push(String(error));
        return String(error);
      },
    );
    t.diagnostic(await done);
  }
  relay.delay_ms = 0;
  assert.deepEqual(failed, []);
}

suite("PostgreSQL with latency", { skip: postgresMissing() }, () => {
  test("a read takes one round trip, a write at most two", async (t) => {
    const { relay, url } = await farDatabase(t);
    const settings = ["--database", url, "--log-level", "error", "--host-lease", "300"];
    const daemon = await startDaemon(t, tempDir(), settings);
    await daemon.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const wish = { config: { image: "web:1" }, skip_launch: true };
    const { body } = await daemon.call("POST", "/v1/apps/web/machines", wish);
    await holdToBounds(t, relay, cases(daemon, String(body["id"])));
  });

  test("every read of the API takes one round trip, lists as a whole and in pages", async (t) => {
    const { relay, url } = await farDatabase(t);
    const platform = await furnished(t, { HANGAR_DATABASE_URL: url, HANGAR_HOST_LEASE: "300" });
    const { ask, names } = platform;
    await ask(`POST /v1/apps/web/machines/${names["machine_id"]}/lease`, { body: { ttl: 3000 } });
    await ask("PUT /v1/apps/web/alerts/rules", { body: { content: "groups: []" } });
    await ask("POST /v1/sprites", { body: { name: "kept", image: "web:1" } });
    names["sprite_name"] = "kept";
    const receivers = "route: { receiver: none }\nreceivers: [{ name: none }]";
    await ask("PUT /v1/orgs/acme/alerts/receivers", { body: { content: receivers } });
    const empty = `/v1/apps/web/volumes/${names["empty_volume_id"]}/snapshots`;
    const nothing = { name: "an empty list of snapshots", trips: 1, ask: () => ask(`GET ${empty}`) };
    const all = reads(platform);
    assert.ok(all.length > 100, `${all.length} reads`);
    await holdToBounds(t, relay, [...all, nothing]);
  });
});
