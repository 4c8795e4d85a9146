/** The dashboard while a part of the platform is not ready: it says which, why, and what that means, on every page. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { systemClock } from "#core/clock.ts";
import { type ApiError, errorBody } from "#core/errors.ts";
import { Readiness } from "#http/readiness.ts";
import { testPlatform } from "../platform.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { startRelay } from "../relay.ts";
import { axe, noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

const NARROW = { viewport: { width: 390, height: 780 } };

/** What the banner says once it is there, on a page that is no wider than the screen and that axe finds nothing wrong with. */
async function bannerOf(page: Page): Promise<string> {
  const banner = page.locator("main .not-ready");
  await banner.waitFor();
  assert.ok((await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")) <= 0, "too wide");
  assert.deepEqual(await axe(page), []);
  const shot = process.env["HANGAR_TEST_PICTURES"];
  if (shot) await page.screenshot({ path: `${shot}/not-ready-${page.viewportSize()?.width}.png` });
  return (await banner.textContent()) ?? "";
}

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard while the platform is not ready", { skip: noBrowser }, () => {
    test("names each part that is missing, with the reason and what it means", async (t) => {
      const platform = await testPlatform(t);
      const because = {
        database: "it cannot be reached",
        executor: "the disk is full",
        proxy: "it did not answer within 2 s",
        lease: "it was not renewed for 12 s",
      };
      const parts = Object.keys(because) as (keyof typeof because)[];
      const checks = parts.map((part) => ({ part, problem: async () => because[part] }));
      const thrown = await new Readiness(checks, systemClock).answer().catch((error: unknown) => error as ApiError);
      const { page } = await visit(t, await openBrowser(t), platform);
      await page.getByText("live", { exact: true }).waitFor();
      const body = JSON.stringify(errorBody(thrown as ApiError, "r"));
      const away = JSON.stringify({ error: "the database cannot be reached", retryable: false });
      await page.route("**/v1/platform/facts", (route) => route.fulfill({ status: 503, body: away }));
      await page.route("**/readyz", (route) => route.fulfill({ status: 503, contentType: "application/json", body }));
      await page.reload();
      const said = await bannerOf(page);
      for (const reason of Object.values(because)) assert.ok(said.includes(reason), said);
      assert.match(said, /Database: .*Nothing can be read or changed.*Executor: .*Edge proxy: .*Host lease: /);
      await page.evaluate('location.hash = "#/settings"');
      await page.getByText("Not ready: Database, Executor, Edge proxy, Host lease.").waitFor();
      await page.getByText("the database cannot be reached").waitFor();
      await page.setViewportSize(NARROW.viewport);
      assert.equal(await bannerOf(page), said);
      await page.unroute("**/v1/platform/facts");
      await page.unroute("**/readyz");
      await page.locator("main .not-ready").waitFor({ state: "detached" });
      await page.getByText(/^Ready: Database, /).waitFor();
      // What failed meanwhile is asked for again.
      await page.getByText("Started", { exact: true }).waitFor();
    });

    test("says that the database is away while it is, and nothing once it is back", { skip: postgresMissing() }, (t) =>
      databaseAway(t),
    );
  });
}

async function databaseAway(t: Parameters<typeof visit>[0]): Promise<void> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const near = new URL((await postgres.database()).replace("@/", "@localhost/"));
  const relay = await startRelay(`${near.searchParams.get("host")}/.s.PGSQL.5432`);
  t.after(() => relay.close());
  const HANGAR_DATABASE_URL = `postgres://hangar@127.0.0.1:${relay.port}${near.pathname}`;
  const platform = await testPlatform(t, { HANGAR_DATABASE_URL });
  const browser: Browser = await openBrowser(t);
  const opened = Date.now();
  const { page } = await visit(t, browser, platform, NARROW);
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(await page.locator("main .not-ready").count(), 0);
  relay.silence();
  assert.match(await bannerOf(page), /Database: it /);
  const notice = page.getByRole("banner").locator(".out-of-date");
  assert.match(
    (await notice.textContent()) ?? "",
    /^Out of date since \d\d:\d\d:\d\d: the database is away\. What you see here may have changed\.$/,
  );
  const since = Date.parse((await notice.locator("time").getAttribute("datetime")) ?? "");
  assert.ok(since >= opened && since <= Date.now(), "it is when the database last answered");
  assert.equal(await page.getByText("live", { exact: true }).count(), 0);
  await page.setViewportSize({ width: 1280, height: 860 });
  assert.match(await bannerOf(page), /Database: it /);
  relay.restore();
  await page.locator("main .not-ready").waitFor({ state: "detached" });
  await notice.waitFor({ state: "detached" });
  await page.getByText("live", { exact: true }).waitFor();
}
