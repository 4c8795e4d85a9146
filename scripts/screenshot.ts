/** Takes the picture of the dashboard in README.md: `npm run screenshot`, on a box with Chromium. */
import { join } from "node:path";
import { startPlatform } from "../src/testing/index.ts";
import { openBrowser, visit } from "../test/system/browser.ts";

const FILE = join(import.meta.dirname, "../docs/dashboard.png");
const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end), diagnostic: () => {} };

const emulator = await startPlatform({ port: 0, metrics: true });
try {
  const { client } = emulator;
  for (const [app_name, image, count] of [
    ["shop", "registry.example.com/shop:42", 3],
    ["worker", "registry.example.com/worker:7", 2],
    ["docs", "hangar/hello", 1],
  ] as const) {
    await client.call("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
    for (let n = 1; n <= count; n++) {
      const body = { name: `${app_name}-${n}`, config: { image, guest: { cpus: 1, memory_mb: 256 } } };
      const machine = await client.call("POST /v1/apps/:app_name/machines", { params: { app_name }, body });
      const params = { app_name, machine_id: machine.id };
      await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", { params, query: { state: ["started"] } });
      if (app_name === "worker" && n === 2)
        await client.call("POST /v1/apps/:app_name/machines/:machine_id/suspend", { params });
    }
  }
  await emulator.clock.advance(15 * 60 * 1000);
  const browser = await openBrowser(scope);
  const { base_url, token } = emulator;
  const { page } = await visit(scope, browser, { base_url, token }, { viewport: { width: 1280, height: 760 } });
  await page.goto(`${base_url}/#/machines`);
  await page.getByText("shop-1").first().waitFor();
  await page.waitForLoadState("networkidle").catch(() => {});
  await page.screenshot({ path: FILE });
  process.stdout.write(`wrote ${FILE}\n`);
} finally {
  for (const end of ends.reverse()) await end();
  await emulator.close();
}
