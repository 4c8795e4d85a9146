/** Takes the pictures of the dashboard in the documents: `npm run screenshot [-- PAGE …]`, on a box with Chromium. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "../test/system/browser.ts";
import { openScreens, PAGES, picture, VARIANTS } from "../test/system/screens.ts";
import { emulations } from "../test/system/screens-day.ts";

const FOLDER = join(import.meta.dirname, "../docs/screens");
const wanted = process.argv.slice(2);
const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end), diagnostic: () => {} };

const platforms = await emulations();
ends.push(() => platforms.close());
try {
  const browser = await openBrowser(scope);
  mkdirSync(FOLDER, { recursive: true });
  for (const [variant, options] of Object.entries(VARIANTS)) {
    const screens = await openScreens(scope, browser, platforms, options);
    for (const name of Object.keys(PAGES)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const file = join(FOLDER, `${name}-${variant}.webp`);
      try {
        writeFileSync(file, await picture(await screens.page(name)));
        process.stdout.write(`wrote ${file}\n`);
      } catch (thrown) {
        // The others are taken all the same.
        process.stderr.write(`${name}, ${variant}: ${String(thrown)}\n`);
        process.exitCode = 1;
      }
    }
  }
} finally {
  for (const end of ends.reverse()) await end();
}
