/** The Logs page in a real browser: lines that were written before those that it follows are searched on request. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { logReceiver } from "../log-receiver.ts";
import { testPlatform } from "../platform.ts";
import { axe, noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

if (await ownNetwork(import.meta.filename))
  suite("Logs page", { skip: noBrowser }, () => {
    test("log drains are created, tested, seen with their state, and deleted in the settings", async (t) => {
      const platform = await testPlatform(t);
      let status = 204;
      const { url, received } = await logReceiver(t, () => ({ status, body: status === 204 ? "" : "not today" }));
      await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
      const browser = await openBrowser(t);
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/settings`);
      const drains = page.locator("section, .card").filter({ has: page.getByRole("heading", { name: "Log drains" }) });
      await drains.getByText("None yet.").waitFor();
      await drains.getByLabel("Address").fill(`${url}/secret/push`);
      await drains.getByLabel("App", { exact: true }).fill("web");
      await drains.getByLabel("Authorization header").fill("Basic c2VjcmV0");
      await drains.getByRole("button", { name: "Create the drain" }).click();
      const row = drains.getByRole("row").filter({ hasText: url });
      await row.getByText("nothing yet").waitFor();
      await row.getByRole("button", { name: "Send a test line" }).click();
      await page.getByText("took a test line").waitFor();
      assert.deepEqual([received.length, received[0]?.headers.authorization], [1, "Basic c2VjcmV0"]);
      const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config: { image: "shown" } } });
      await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
      await row.getByText("1 line").waitFor();
      status = 503;
      await row.getByRole("button", { name: "Send a test line" }).click();
      await page.getByText("the answer was 503: not today").first().waitFor();
      assert.deepEqual(await axe(page), []);
      assert.ok(!(await page.content()).includes("c2VjcmV0"));
      await row.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete it" }).click();
      await drains.getByText("None yet.").waitFor();
      assert.deepEqual(complaints, []);
    });

    test("finds earlier lines by the same filter, each once, and says when there are no more", async (t) => {
      const platform = await testPlatform(t);
      await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
      const names = ["one", "two", "three", "four"];
      for (const name of names) {
        const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { name, config: { image: name } } });
        await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
      }
      const browser = await openBrowser(t);
      const { page, complaints } = await visit(t, browser, platform);
      // Follows the newest line only, as it would with very many.
      await page.route(/logs\?.*follow=true/, (route) =>
        route.continue({
          url: route
            .request()
            .url()
            .replace(/tail=\d+/, "tail=1"),
        }),
      );
      await page.goto(`${platform.base_url}/#/apps/web/logs`);
      const lines = page.locator(".log .said code");
      await page.getByText("started four").waitFor();
      assert.deepEqual(await lines.allTextContents(), ["started four"]);
      await page.getByRole("button", { name: "Search earlier lines" }).click();
      await page.getByText("3 earlier lines, no more are kept").waitFor();
      assert.deepEqual(
        await lines.allTextContents(),
        names.map((name) => `started ${name}`),
      );
      await page.getByRole("searchbox").fill("two");
      await page.getByRole("button", { name: "Search earlier lines" }).click();
      await page.getByText("1 earlier line, no more are kept").waitFor();
      assert.deepEqual(await lines.allTextContents(), ["started two"]);
      assert.deepEqual(complaints, []);
    });
  });
