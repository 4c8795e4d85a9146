/** An organization of ten thousand machines in a real browser: searched on the platform, live in sight, and no heavier. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { Browser, CDPSession, Page } from "playwright-core";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { until, within } from "../support.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

const MACHINES = 10_000;
/** All of the machines would be seven times that. */
const OPENED_BYTES = 1024 * 1024;
/** One page of a list. */
const PAGE_BYTES = 80 * 1024;
const HEAP_BYTES = 12 * 1024 * 1024;
const INTERACTION_MS = within(100);

/** Ten apps of a thousand machines each; only the first ten run, which is quicker. */
async function fill(platform: TestPlatform): Promise<string[]> {
  const ids: string[] = [];
  for (let app = 0; app < 10; app++)
    await platform.ask("POST /v1/apps", { body: { app_name: `app-${app}`, org_slug: "personal" } });
  const make = async (n: number): Promise<void> => {
    const config = { image: `registry.example/many:${n % 7}`, guest: { cpus: 1, memory_mb: 256 } };
    const body = { name: `m-${n}`, skip_launch: n >= 10, config };
    const made = await platform.ask(`POST /v1/apps/app-${n % 10}/machines`, { body });
    assert.equal(made.status, 200, made.text);
    ids[n] = made.body.id;
  };
  for (let first = 0; first < MACHINES; first += 100)
    await Promise.all(Array.from({ length: 100 }, (_, n) => make(first + n)));
  return ids;
}

/** Bytes of the API's answers so far. */
async function countBytes(session: CDPSession): Promise<() => number> {
  const api = new Set<string>();
  let bytes = 0;
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (new URL(request.url).pathname.startsWith("/v1/")) api.add(requestId);
  });
  session.on("Network.dataReceived", ({ requestId, dataLength }) => {
    if (api.has(requestId)) bytes += dataLength;
  });
  await session.send("Network.enable");
  return () => bytes;
}

async function heap(session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize;
}

/** In the page: from an input until the browser has drawn what follows at once. */
const typing = (text: string): string => `(async () => {
  const filter = document.querySelector("input[type=search]");
  const began = performance.now();
  filter.value = ${JSON.stringify(text)};
  filter.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - began;
})()`;

const nameCells = (page: Page) => page.locator("table.rows tbody td.name");

if (await ownNetwork(import.meta.filename)) {
  suite(`dashboard with ${MACHINES} machines`, { skip: noBrowser }, () => {
    let platform: TestPlatform;
    let browser: Browser;
    let ids: string[];
    const ends: (() => unknown)[] = [];
    const scope = { after: (end: () => unknown) => void ends.push(end) };
    before(async () => {
      platform = await testPlatform(scope);
      browser = await openBrowser(scope);
      ids = await fill(platform);
    });
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });

    test("the list is read in pages as one scrolls, and bytes and memory stay flat", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      const session = await page.context().newCDPSession(page);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      const bytes = await countBytes(session);
      await page.reload();
      await page.goto(`${platform.base_url}/#/machines`);
      await nameCells(page).getByText("m-0", { exact: true }).waitFor();
      await page.getByRole("button", { name: `all ${MACHINES}` }).waitFor();
      t.diagnostic(`opened with ${bytes()} bytes of answers`);
      assert.ok(bytes() < OPENED_BYTES, `${bytes()} bytes`);

      const scrolled = async (to: number): Promise<void> => {
        await until(`row ${to}`, async () => {
          await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
          return Number(await page.locator("table.rows").getAttribute("aria-rowcount")) > to;
        });
      };
      await scrolled(2000);
      const [bytes_before, heap_before] = [bytes(), await heap(session)];
      await scrolled(4000);
      const [more, grown] = [bytes() - bytes_before, (await heap(session)) - heap_before];
      t.diagnostic(`2,000 rows further: ${more} bytes, ${grown} bytes more of heap`);
      assert.ok(more < 20 * PAGE_BYTES, `${more} bytes for 20 pages`);
      assert.ok(grown < HEAP_BYTES, `the heap grew by ${grown} bytes`);
      assert.ok((await page.locator("table.rows tbody tr").count()) < 120, "only the rows in sight are drawn");
      await page.evaluate("scrollTo(0, 0)");
      await nameCells(page).getByText("m-0", { exact: true }).waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a search and the states are counted on the platform, and what is in sight changes live", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/machines`);
      await nameCells(page).first().waitFor();
      const took: number[] = [];
      for (const text of ["m-", "m-99", "m-9999"]) took.push(await page.evaluate<number>(typing(text)));
      t.diagnostic(`a key is answered within ${took.map((ms) => ms.toFixed(0)).join(", ")} ms`);
      assert.ok(Math.min(...took) < INTERACTION_MS, `${took.join(", ")} ms`);
      await page.getByRole("button", { name: "all 1", exact: true }).waitFor();
      assert.deepEqual(await nameCells(page).locator("a").allTextContents(), ["m-9999"]);
      assert.match(page.url(), /q=m-9999/);

      await page.getByLabel("Filter machines").fill("app-3 many:3");
      await page.getByRole("button", { name: /^all 14[23]$/ }).waitFor();
      await page.getByLabel("Filter machines").fill("");
      await page.getByRole("button", { name: "started 10" }).click();
      await until("the running machines alone", async () => (await nameCells(page).count()) === 10);

      const rowOf = (name: string) =>
        page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
      const row = rowOf("m-4");
      await row.getByText("started").waitFor();
      await platform.ask(`POST /v1/apps/app-4/machines/${ids[4]}/stop`, { body: {} });
      await row.getByText("stopped").waitFor();
      await page.getByRole("button", { name: "started 9" }).waitFor();
      await page.getByLabel("Select m-5").check();
      await page.getByRole("toolbar").getByRole("button", { name: "Stop" }).click();
      await rowOf("m-5").getByText("stopped").waitFor();
      assert.deepEqual(complaints, []);
    });

    test("Ctrl K finds a machine, an action and an app, and an app's page follows its machines", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.getByRole("link", { name: "10k machines" }).waitFor();
      await page.keyboard.press("Control+k");
      const box = page.getByRole("combobox");
      await box.fill("start m-7777");
      await page.getByRole("option", { name: /^Start m-7777/i }).waitFor();
      await box.fill("app-6: logs");
      await page.getByRole("option", { name: /app-6: logs/ }).waitFor();
      await box.fill("m-8888");
      await page
        .getByRole("option", { name: /m-8888/ })
        .first()
        .waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "m-8888" }).waitFor();
      await page.goto(`${platform.base_url}/#/apps/app-8/machines`);
      await page.getByRole("cell", { name: "m-8", exact: true }).waitFor();
      await platform.ask(`POST /v1/apps/app-8/machines/${ids[8]}/stop`, { body: {} });
      await page.getByRole("row", { name: /stopped m-8 / }).waitFor();
      assert.deepEqual(complaints, []);
    });
  });
}
