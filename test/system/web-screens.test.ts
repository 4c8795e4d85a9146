/** The pages look as their pictures in the documents, in light, dark and on a phone, so that an accident is seen. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { difference, openScreens, PAGES, picture, VARIANTS } from "./screens.ts";
import { type Emulations, emulations } from "./screens-day.ts";

const FOLDER = join(import.meta.dirname, "../../docs/screens");
/** Ids, times and lines of charts differ each time; a lost column, colour or style sheet is far more. */
const BUDGET = 0.025;

if (await ownNetwork(import.meta.filename)) {
  suite("pictures of the dashboard", { skip: noBrowser }, () => {
    let browser: Browser;
    let platforms: Emulations;
    const ends: (() => unknown)[] = [];
    const scope = { after: (end: () => unknown) => void ends.push(end), diagnostic: () => {} };
    before(async () => {
      platforms = await emulations();
      ends.push(() => platforms.close());
      browser = await openBrowser(scope);
    });
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });

    for (const [variant, options] of Object.entries(VARIANTS))
      test(`every page looks as its picture: ${variant}`, async (t) => {
        const judge = await browser.newPage();
        const screens = await openScreens(scope, browser, platforms, options);
        for (const name of Object.keys(PAGES)) {
          const file = join(FOLDER, `${name}-${variant}.webp`);
          assert.ok(existsSync(file), `${file} is missing: \`npm run screenshot\` makes it`);
          const now = await picture(await screens.page(name));
          const share = await difference(judge, readFileSync(file), now);
          t.diagnostic(`${name}: ${(share * 100).toFixed(2)} % of the pixels differ`);
          assert.ok(share < BUDGET, `${name}: ${(share * 100).toFixed(1)} % differ; look, then \`npm run screenshot\``);
        }
      });

    test("the documents show every picture, and the folder has no others", () => {
      const shown = readFileSync(join(FOLDER, "../dashboard.md"), "utf8");
      const files = Object.keys(PAGES).flatMap((name) =>
        Object.keys(VARIANTS).map((variant) => `${name}-${variant}.webp`),
      );
      assert.deepEqual(readdirSync(FOLDER).sort(), files.sort());
      assert.deepEqual(
        files.filter((file) => !shown.includes(`screens/${file}`)),
        [],
      );
    });

    test("a page in other colours is past the budget", async () => {
      const judge = await browser.newPage();
      const [one, other] = ["overview-light", "overview-dark"].map((name) =>
        readFileSync(join(FOLDER, `${name}.webp`)),
      );
      assert.ok(one && other && (await difference(judge, one, other)) > BUDGET);
    });
  });
}
