/** The Logs page in a real browser: lines that were written before those that it follows are searched on request. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

if (await ownNetwork(import.meta.filename))
  suite("Logs page", { skip: noBrowser }, () => {
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
