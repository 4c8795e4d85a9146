/** Builds and deploys on Overview, previews and the cost of queries, in a real browser: live, and for two people at once. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { axe, noBrowser } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { dashboard, openApp } from "./web-fixtures.ts";

const DEPLOY_MS = 240_000;
const [SERIES, POINTS, STEP_MS] = [3, 40, 15_000];

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard: builds, deploys, previews and the cost of queries", { skip: noBrowser }, () => {
    const opened = dashboard(async (given) => {
      await openApp(given, "web");
      const { platform } = given;
      const org = (await platform.ask("GET /v1/orgs/personal")).body.id as string;
      const end = Math.floor(systemClock.now() / STEP_MS) * STEP_MS;
      const samples = Array.from({ length: SERIES * POINTS }, (_, n) => ({
        labels: labelsOf({ __name__: "queue_length", app: "web", queue: String(n % SERIES) }),
        timestamp: end - Math.floor(n / SERIES) * STEP_MS,
        value: n,
      }));
      await platform.metrics().append(org, seriesBatch(samples));
    });
    const release = async (path: string, body: object) => {
      const { status, text, body: made } = await opened.platform.ask(`POST /v1/apps/web/releases${path}`, { body });
      assert.ok(status < 300, text);
      return made as { version: number };
    };

    test("a deploy appears on Overview, advances and ends without a reload, for two people at once", async (t) => {
      const tabs = [await opened.open(t, "overview"), await opened.open(t, "overview")];
      for (const { page } of tabs) await page.getByRole("heading", { name: "Apps" }).waitFor();
      const { version } = await release("", { description: "deploy", definition: {}, image: "shop/web:2" });
      for (const { page } of tabs) await page.getByRole("row", { name: /deploying web v1 · deploy/ }).waitFor();
      await release(`/${version}`, { status: "running", progress: "1 of 2 machines: updated web-1" });
      for (const { page } of tabs)
        await page.getByRole("row", { name: /v1 · 1 of 2 machines: updated web-1/ }).waitFor();
      assert.deepEqual(await axe(tabs[0]?.page ?? assert.fail()), []);
      await release(`/${version}`, { status: "failed", failure: "web-1 was not healthy after 300 s" });
      for (const { page } of tabs) {
        await page.getByRole("heading", { name: "Running now" }).waitFor({ state: "detached" });
        const failure = page.locator(".failures li").filter({ hasText: "deploy failed" });
        await failure.getByText("v1: web-1 was not healthy after 300 s").waitFor();
        await failure.getByRole("link", { name: "Releases" }).waitFor();
      }
      assert.deepEqual(await axe(tabs[0]?.page ?? assert.fail()), []);
      const next = await release("", { description: "deploy", definition: {}, image: "shop/web:3" });
      await release(`/${next.version}`, { status: "complete" });
      for (const { page } of tabs) await page.getByText("deploy failed").waitFor({ state: "detached" });
      for (const { complaints } of tabs) assert.deepEqual(complaints, []);
    });

    test("the explorer says what a query costs, as a share of the limits, and warns near one", async (t) => {
      const { page, complaints } = await opened.open(t, "metrics/explore?query=queue_length");
      const cost = page.getByRole("list", { name: "What the query cost" });
      await cost.getByText(`${SERIES}`, { exact: true }).waitFor();
      await cost.getByText(`${SERIES * POINTS}`, { exact: true }).waitFor();
      await cost.getByText("under 0.1 % of 200M").waitFor();
      await cost.getByText(/% of 30 s$/).waitFor();
      await cost.getByText(/^[\d.]+ (B|KiB)$/).waitFor();
      assert.deepEqual(await axe(page), []);
      // The platform's own answer with a lower limit: a query that reads 160 million samples takes too long for a test.
      await page.route("**/api/v1/query_range**", async (route) => {
        const response = await route.fetch();
        const answer = (await response.json()) as { stats: { limits: object } };
        const stats = { ...answer.stats, limits: { ...answer.stats.limits, samples: SERIES * POINTS + 10 } };
        await route.fulfill({ response, json: { ...answer, stats } });
      });
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByText(/Near the limit of samples \(9\d(\.\d)? %\)/).waitFor();
      assert.deepEqual(await axe(page), []);
      assert.deepEqual(complaints, []);
    });

    test("previews are switched on, made, seen by another person and deleted", async (t) => {
      await opened.platform.ask("POST /v1/apps", { body: { app_name: "store" } });
      const deployed = await opened.platform.ask("POST /v1/apps/store/deployments", {
        body: { action: "deploy", image: "shop/web:4", port: 8080 },
      });
      assert.equal(deployed.status, 200, deployed.text);
      const { page, complaints } = await opened.open(t, "apps/store/previews");
      const other = await opened.openReadOnly(t, "apps/store/previews");
      const make = page.getByRole("button", { name: "New preview" });
      await page.getByText("No previews.").waitFor();
      assert.equal(await make.isDisabled(), true);
      await page.getByLabel("Pushes of other branches").check();
      await page.getByText("hangar previews settings on --days 7 --most 5 --no-secrets --app store").waitFor();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved. Pushes of branches make previews.").waitFor();
      await make.click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Branch").fill("feature/basket");
      assert.equal(await dialog.getByLabel("Image").inputValue(), "shop/web:4");
      await dialog.getByText("create a machine, group app").waitFor();
      await dialog.getByText("hangar deploy --image=shop/web:4 --preview=feature/basket --app=store").waitFor();
      assert.deepEqual(await axe(page), []);
      await dialog.getByRole("button", { name: "Deploy", exact: true }).click();
      const ended = dialog.getByText(/^(Done: release v\d+ runs\.|Failed: )/);
      await ended.waitFor({ timeout: DEPLOY_MS });
      assert.match((await ended.textContent()) ?? "", /Done/);
      await dialog.getByRole("button", { name: "Close" }).click();
      for (const tab of [page, other.page]) {
        const row = tab.getByRole("row", { name: /feature\/basket ready/ });
        await row.getByText("in 6 d").waitFor();
      }
      const remove = other.page.getByRole("button", { name: "Delete" });
      assert.equal(await remove.isDisabled(), true);
      assert.equal(await remove.getAttribute("title"), "Your token can only read");
      const [{ config }] = (await opened.platform.ask("GET /v1/orgs/personal/machines?search=basket")).body.machines;
      assert.equal(config.image.split("@")[0], "shop/web:4");
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Delete" }).click();
      await dialog.getByText("hangar previews delete feature/basket --app store").waitFor();
      await dialog.getByRole("button", { name: "curl" }).click();
      await dialog.getByText(/curl -X DELETE .*\/v1\/apps\/store\/previews\/store-feature-basket-/).waitFor();
      await dialog.getByRole("button", { name: "Delete it" }).click();
      for (const tab of [page, other.page]) await tab.getByText("No previews.").waitFor();
      assert.deepEqual(complaints, []);
    });
  });
}
