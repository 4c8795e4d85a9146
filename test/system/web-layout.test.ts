/** Every page at 200 % zoom, where nothing may be cut or scroll sideways, and without moving while its data arrives. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { openScreens, PAGES, picture, VARIANTS } from "./screens.ts";
import { type Emulations, emulations } from "./screens-day.ts";

/** 1280 x 800 at 200 %. */
const ZOOMED = { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 };
/** What the Web Vitals call good. */
const SHIFT = 0.1;

/** In the page: what reaches beyond the window, or is cut by something that does not scroll and does not say so with an ellipsis. */
const CUT = `(() => {
  const found = [];
  const say = (element, what) => found.push(what + ": " + element.outerHTML.slice(0, 160));
  const styleOf = (element) => getComputedStyle(element);
  const scrolls = (element) => {
    for (let one = element.parentElement; one; one = one.parentElement)
      if (/auto|scroll/.test(styleOf(one).overflowX)) return true;
    return false;
  };
  const beyond = document.documentElement.scrollWidth - innerWidth;
  if (beyond > 0) found.push(beyond + " px too wide");
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || element.closest(".offscreen, svg, canvas, .skip, .drawer")) continue;
    const style = styleOf(element);
    if (style.visibility === "hidden") continue;
    if (box.right > innerWidth + 1 && !scrolls(element)) say(element, "beyond the window");
    const hidden = /hidden|clip/.test(style.overflowX) && element.textContent.trim() !== "";
    if (hidden && element.scrollWidth > element.clientWidth + 1 && style.textOverflow !== "ellipsis") say(element, "cut at its side");
    if (hidden && /hidden|clip/.test(style.overflowY) && element.scrollHeight > element.clientHeight + 3) say(element, "cut at its foot");
    if (/fixed|sticky/.test(style.position) && box.height > innerHeight / 2) say(element, "covers half of the window");
  }
  return found;
})()`;

/** In the page, before anything is drawn: adds up what moves. */
const WATCH = `globalThis.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput)
      shifts.push({ value: entry.value, what: entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? "") });
}).observe({ type: "layout-shift", buffered: true });`;

interface Shift {
  value: number;
  what: string[];
}

if (await ownNetwork(import.meta.filename)) {
  suite("layout of the dashboard", { skip: noBrowser }, () => {
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

    test("every page of the menu is looked at", () => {
      const paths = Object.values(PAGES).map(({ path }) => path.split(/[/?]/)[0]);
      const menu = readFileSync(join(import.meta.dirname, "../../web/pages.ts"), "utf8");
      const ids = [...menu.matchAll(/\{ id: "(\w+)"/g)].map(([, id]) => id);
      assert.ok(ids.length > 10);
      assert.deepEqual(
        ids.filter((id) => !paths.includes(id)),
        [],
      );
    });

    test("at 200 % zoom nothing scrolls sideways and nothing is cut", async () => {
      const screens = await openScreens(scope, browser, platforms, ZOOMED);
      const wrong: string[] = [];
      for (const name of Object.keys(PAGES)) {
        const page = await screens.page(name);
        await picture(page);
        wrong.push(...(await page.evaluate<string[]>(CUT)).slice(0, 5).map((fault) => `${name}: ${fault}`));
      }
      assert.deepEqual(wrong, []);
      assert.deepEqual(screens.complaints(), []);
    });

    test("what is too wide, is cut or moves is found", async () => {
      const screens = await openScreens(scope, browser, platforms, ZOOMED, WATCH);
      const page = await screens.page("unknown");
      await page.evaluate(`for (const [text, style] of [
        ["a text that does not fit", "width: 90px; overflow: hidden; white-space: nowrap"],
        ["wide", "width: 900px"],
      ]) {
        const element = Object.assign(document.createElement("div"), { textContent: text });
        element.style.cssText = style;
        document.querySelector("main").append(element);
      }`);
      const found = await page.evaluate<string[]>(CUT);
      for (const fault of [
        /px too wide/,
        /beyond the window: <div style="width: 900px/,
        /cut at its side: <div style="width: 90px/,
      ])
        assert.ok(
          found.some((one) => fault.test(one)),
          `${fault} in ${found.join("\n")}`,
        );
      await page.evaluate(`document.querySelector("main").style.paddingTop = "200px"`);
      await picture(page);
      const moved = (await page.evaluate<Shift[]>("shifts")).reduce((sum, { value }) => sum + value, 0);
      assert.ok(moved > SHIFT, `${moved}`);
    });

    for (const variant of ["light", "phone"] as const)
      test(`nothing moves while the data of a page arrives: ${variant}`, async (t) => {
        const screens = await openScreens(scope, browser, platforms, VARIANTS[variant], WATCH);
        const wrong: string[] = [];
        for (const name of Object.keys(PAGES)) {
          const page = await screens.page(name);
          await picture(page);
          const shifts = await page.evaluate<Shift[]>("shifts");
          const moved = shifts.reduce((sum, { value }) => sum + value, 0);
          if (moved > 0) t.diagnostic(`${name}: ${moved.toFixed(3)}`);
          if (moved >= SHIFT) wrong.push(`${name}: ${moved.toFixed(3)} ${JSON.stringify(shifts.slice(0, 3))}`);
        }
        assert.deepEqual(wrong, []);
      });
  });
}
