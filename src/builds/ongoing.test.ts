import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { anApp, aRelease } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlBuildStore } from "#stores/sql/builds.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { Ongoing } from "./ongoing.ts";

interface Message {
  builds: { app_name: string; state: string }[];
  deployments: { app_name: string; version: number; progress: string | null }[];
}

async function open(t: TestContext) {
  const database = inlineSqlite();
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
  await sqlAppStore(database).insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
  t.after(() => database.close());
  const releases = sqlReleaseStore(database);
  let reads = 0;
  const running: typeof releases.running = (...args) => {
    reads++;
    return releases.running(...args);
  };
  const parts = { builds: sqlBuildStore(database), releases: { running }, clock: systemClock, log: silentLog };
  return { ongoing: new Ongoing(parts), releases, reads: () => reads };
}

suite("what is built and deployed, for those who watch", () => {
  test("all watchers of an organization see a deploy begin, advance and end, and one read serves them all", async (t) => {
    const { ongoing, releases } = await open(t);
    const ending = new AbortController();
    const all = [1, 2].map(() => ongoing.follow("o1", ending.signal));
    const next = async () =>
      (await Promise.all(all.map((one) => one.next()))).map(({ value }) =>
        (value as Message).deployments.map(({ app_name, version, progress }) => [app_name, version, progress]),
      );
    assert.deepEqual(await next(), [[], []]);
    await releases.insertRelease(aRelease(), 10);
    assert.deepEqual(await next(), [[["web", 1, null]], [["web", 1, null]]]);
    await releases.putStatus("a1", 1, { status: "running", failure: null, progress: "1 of 2" }, 7);
    assert.deepEqual(await next(), [[["web", 1, "1 of 2"]], [["web", 1, "1 of 2"]]]);
    await releases.putStatus("a1", 1, { status: "complete", failure: null }, 8);
    assert.deepEqual(await next(), [[], []]);
    ending.abort();
    assert.deepEqual(
      (await Promise.all(all.map((one) => one.next()))).map(({ done }) => done),
      [true, true],
    );
  });

  test("nothing is read when nobody watches, and a new watcher gets the present state", async (t) => {
    const { ongoing, releases, reads } = await open(t);
    assert.equal(reads(), 0);
    const first = ongoing.follow("o1", new AbortController().signal);
    await first.next();
    await first.return(undefined);
    const before = reads();
    await releases.insertRelease(aRelease(), 10);
    const second = ongoing.follow("o1", new AbortController().signal);
    const { deployments } = (await second.next()).value as Message;
    assert.equal(deployments.length, 1);
    assert.equal(reads(), before + 1);
    await second.return(undefined);
  });
});
