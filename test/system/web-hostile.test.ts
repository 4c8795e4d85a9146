/**
 * Markup in everything that users name or write, on every page of the dashboard in a real browser: names, metadata,
 * environment, images, labels. None of it becomes part of the page. Live streams are in web-hostile-streams.test.ts.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type { Route } from "playwright-core";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { HOSTILE, nothingRan, runsWhereCareless, tampered } from "./hostile-texts.ts";
import { ownNetwork } from "./own-network.ts";

/** Fields by which the pages find and sort things, or that are numbers, times and words of the platform's own. */
const KEPT =
  /(^|_)(id|slug|state|at|status|timestamp|type|kind|digest|version|url|ip|region|cursor|addresses|access|since)$|^(resultType|app_name|role|org)$/;

async function tamper(route: Route, markup: string): Promise<void> {
  const request = route.request();
  // What never ends cannot be changed on its way; pages read the same things from answers as well.
  if (request.headers()["accept"]?.includes("text/event-stream")) return await route.continue();
  const response = await route.fetch();
  if (!response.headers()["content-type"]?.startsWith("application/json")) return await route.fulfill({ response });
  return await route.fulfill({ response, json: tampered(await response.json(), markup, KEPT) });
}

async function furnished(t: TestContext): Promise<{ platform: TestPlatform; places: string[] }> {
  const platform = await testPlatform(t);
  const ask = async (target: string, body: object): Promise<{ id: string; connection: { id: string } }> => {
    const answer = await platform.ask(target, { body });
    assert.ok(answer.status < 300, answer.text);
    return answer.body;
  };
  const [markup = ""] = HOSTILE;
  await ask("POST /v1/apps", { app_name: "web" });
  // What the platform takes is in its own streams, too.
  const config = { image: "registry.example/web:1", env: { MODE: markup }, metadata: { note: markup } };
  const machine = await ask("POST /v1/apps/web/machines", { name: "first", config });
  await platform.ask(`GET /v1/apps/web/machines/${machine.id}/wait?state=started`);
  const volume = await ask("POST /v1/apps/web/volumes", { name: "data", size_gb: 1 });
  await ask("POST /v1/orgs/personal/tokens", { kind: "readonly", name: "eyes" });
  const connector = { base_api_url: "https://api.example.com", access_token: "key", auth_method: "header" };
  const { connection } = await ask("POST /v1/oauth/connections/custom_api", { name: markup, ...connector });
  const pages =
    "overview machines apps services volumes images activity metrics databases connectors identity hosts tokens settings";
  const things = [`machines/web/${machine.id}`, `volumes/web/${volume.id}`, `connectors/${connection.id}`, "apps/web"];
  return { platform, places: [...pages.split(" "), ...things] };
}

if (await ownNetwork(import.meta.filename))
  suite("hostile text in the dashboard", { skip: noBrowser }, () => {
    test("hostile text is shown as text on every page, and never executed", async (t) => {
      const { platform, places } = await furnished(t);
      const browser = await openBrowser(t);
      await runsWhereCareless(browser);
      for (const markup of HOSTILE) {
        const { page, complaints } = await visit(t, browser, platform);
        await page.route("**/v1/**", (route) => tamper(route, markup));
        let shown = 0;
        for (const place of places) {
          await page.goto(`${platform.base_url}/#/${place}`);
          await page.locator("main h1").waitFor();
          await page.locator(".loading").first().waitFor({ state: "detached" });
          await nothingRan(page, `${place}: ${markup}`);
          shown += (await page.locator("main").textContent())?.includes(markup.slice(0, 20)) ? 1 : 0;
        }
        t.diagnostic(`${markup.slice(0, 20)} was shown as text on ${shown} of ${places.length} pages`);
        assert.ok(shown >= 5, `${shown} pages showed it`);
        assert.deepEqual(complaints, [], "nothing was refused by the content policy, because nothing got that far");
        await page.context().close();
      }
    });
  });
