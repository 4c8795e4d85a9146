/** Takes the pictures of the dashboard in the documents: `npm run screenshot`, on a box with Chromium. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "../test/system/browser.ts";
import { emulatedDay, PAGES, picture, VARIANTS, type Variant } from "../test/system/screens.ts";

const FOLDER = join(import.meta.dirname, "../docs/screens");
const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end), diagnostic: () => {} };

const day = await emulatedDay();
try {
  const browser = await openBrowser(scope);
  mkdirSync(FOLDER, { recursive: true });
  for (const name of Object.keys(PAGES))
    for (const variant of Object.keys(VARIANTS) as Variant[]) {
      const file = join(FOLDER, `${name}-${variant}.webp`);
      writeFileSync(file, await picture(scope, browser, day, { name, variant }));
      process.stdout.write(`wrote ${file}\n`);
    }
} finally {
  for (const end of ends.reverse()) await end();
  await day.close();
}
