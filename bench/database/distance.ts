/** Requests to a platform whose database is far away: how often each waits for it, and how long it takes in all. */
import assert from "node:assert/strict";
import { startPostgres } from "../../test/postgres.ts";
import { startRelay } from "../../test/relay.ts";
import { tempDir } from "../../test/support.ts";
import { startDaemon } from "../../test/system/daemon.ts";
import { median, type Report } from "../report.ts";

/** In each direction. */
const DELAY_MS = 10;
const TRIES = 25;
const MACHINES = 100;
const PATH = "/v1/apps/web/machines";

export async function distance(report: Report): Promise<void> {
  report.section(`a database at a distance of ${2 * DELAY_MS} ms: medians of ${TRIES} requests`);
  await using made = new AsyncDisposableStack();
  const t = { after: (end: () => unknown) => made.defer(async () => void (await end())) };
  const postgres = await startPostgres();
  made.defer(() => postgres.stop());
  const near = new URL((await postgres.database()).replace("@/", "@localhost/"));
  const relay = await startRelay(`${near.searchParams.get("host")}/.s.PGSQL.5432`);
  made.defer(() => relay.close());
  // What the platform does by itself would be counted, too.
  const settings = ["--host-lease", "300", "--log-level", "error"];
  const url = `postgres://hangar@127.0.0.1:${relay.port}${near.pathname}`;
  const { call } = await startDaemon(t as never, tempDir(), ["--database", url, ...settings]);
  const apps = Array.from({ length: TRIES }, (_, index) => `first-${index}`);
  for (const app_name of ["web", ...apps]) await call("POST", "/v1/apps", { app_name, org_slug: "personal" });
  const body = { config: { image: "web:1" }, skip_launch: true };
  const ids: string[] = [];
  for (let index = 0; index < MACHINES; index++) ids.push(String((await call("POST", PATH, body)).body["id"]));
  const requests: Record<string, (index: number) => Promise<{ status: number }>> = {
    "one machine": (index) => call("GET", `${PATH}/${ids[index]}`),
    [`a list of ${MACHINES} machines`]: () => call("GET", PATH),
    "a page of 20 of it": () => call("GET", `${PATH}?limit=20`),
    "the first list of an app that this process is asked for": (index) =>
      call("GET", `/v1/apps/${apps[index]}/machines`),
    "a write of metadata": (index) => call("POST", `${PATH}/${ids[0]}/metadata/n`, { value: String(index) }),
    "a create": () => call("POST", PATH, body),
  };
  relay.delay_ms = DELAY_MS;
  for (const [what, ask] of Object.entries(requests)) {
    const trips: number[] = [];
    const took: number[] = [];
    for (let index = 0; index < TRIES; index++) {
      relay.trips();
      const began = performance.now();
      const { status } = await ask(index);
      took.push(performance.now() - began);
      trips.push(relay.trips());
      assert.ok(status < 300, `${what}: ${status}`);
    }
    report.add({ what: `${what}: round trips`, value: median(trips), unit: "" });
    report.add({ what, value: median(took), unit: "ms" });
  }
}
