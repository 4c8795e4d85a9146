/**
 * The dashboard when the browser drops its requests, as it does when a network interface of the box comes or goes
 * (ERR_NETWORK_CHANGED): to a page every dropped request is the same failed fetch.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

/** Takes down every alert that the page shows from now on, and when it says that it has no connection. */
const WATCH = `{
  window.shown = [];
  new MutationObserver(() => {
    for (const one of document.querySelectorAll('[role="alert"]')) if (one.textContent.trim()) window.shown.push(one.textContent);
    if (document.querySelector(".link.broken")) window.shown.push("no connection");
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
}`;
const PAGES = ["Machines", "Volumes", "Tokens", "Hosts"];

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard requests dropped by the browser", { skip: noBrowser }, () => {
    test("modules, calls and a change are retried, applied once, and no error is shown", async (t) => {
      const platform = await testPlatform(t);
      const { page } = await visit(t, await openBrowser(t), platform);
      await page.getByText("live", { exact: true }).waitFor();
      await page.evaluate(WATCH);
      const dropped = new Set<string>();
      await page.route("**/*", async (route, request) => {
        const what = `${request.method()} ${new URL(request.url()).pathname}`;
        if (dropped.has(what)) return await route.continue();
        dropped.add(what);
        // One that changes something arrives, and only its answer is lost.
        if (request.method() === "POST") await route.fetch();
        return await route.abort("failed");
      });
      for (const title of PAGES) {
        await page.evaluate(`location.hash = "#/${title.toLowerCase()}"`);
        await page.locator("main").getByRole("heading", { name: title, level: 1 }).waitFor();
        await page.locator(".loading").first().waitFor({ state: "detached" });
      }
      await page.evaluate('location.hash = "#/machines/new"');
      await page.getByLabel("App").fill("fresh");
      await page.getByLabel("Image").fill("registry.example/fresh:2");
      await page.getByRole("button", { name: "Create machine" }).click();
      await page.getByText("started", { exact: true }).first().waitFor();
      const machines = (await platform.ask("GET /v1/apps/fresh/machines")).body as unknown[];
      assert.equal(machines.length, 1);
      assert.ok(dropped.has("POST /v1/apps/fresh/machines"), [...dropped].join(", "));
      assert.deepEqual(await page.evaluate("window.shown"), []);
    });
  });
}
