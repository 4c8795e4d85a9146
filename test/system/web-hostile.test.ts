/**
 * Markup in everything that users name or write, on every page of the dashboard in a real browser: names, metadata,
 * environment, images, labels. None of it becomes part of the page. Event streams and followed logs pass as they are.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type { Route } from "playwright-core";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

/** Each runs as soon as it is taken for markup, or is clicked. */
const HOSTILE = [
  `"'><img src=x onerror="window.owned=1">`,
  `</script><script>window.owned=1</script>`,
  `<svg onload="window.owned=1"></svg>`,
  `javascript:window.owned=1//<iframe srcdoc="<script>parent.owned=1</script>"></iframe>`,
  `"><style>*{display:none}</style><base href="https://evil.example/">`,
];

/** Fields by which the pages find and sort things, or that are numbers, times and words of the platform's own. */
const KEPT =
  /(^|_)(id|slug|state|at|status|timestamp|type|kind|digest|version|url|ip|region|cursor|addresses|access|since)$|^(resultType|app_name|role|org)$/;

/** The same answer with markup in every other text, and in the names of what users may name freely. */
function tampered(value: unknown, markup: string, key = ""): unknown {
  if (typeof value === "string") return KEPT.test(key) || value === "" ? value : `${value}${markup}`;
  if (Array.isArray(value)) return value.map((one) => tampered(one, markup, key));
  if (typeof value !== "object" || value === null) return value;
  const free = ["metadata", "env", "labels"].includes(key) ? { [markup]: markup } : {};
  return {
    ...Object.fromEntries(Object.entries(value).map(([name, one]) => [name, tampered(one, markup, name)])),
    ...free,
  };
}

async function tamper(route: Route, markup: string): Promise<void> {
  const request = route.request();
  // What never ends cannot be changed on its way; pages read the same things from answers as well.
  if (request.headers()["accept"]?.includes("text/event-stream")) return await route.continue();
  const response = await route.fetch();
  if (!response.headers()["content-type"]?.startsWith("application/json")) return await route.fulfill({ response });
  return await route.fulfill({ response, json: tampered(await response.json(), markup) });
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

/** What got into the page as markup. */
const INJECTED = `[...document.querySelectorAll("img[src=x], iframe, base, svg[onload], main script, main style, [onerror], [onload], a[href^=javascript]")].map((one) => one.outerHTML)`;

if (await ownNetwork(import.meta.filename))
  suite("hostile text in the dashboard", { skip: noBrowser }, () => {
    test("hostile text is shown as text on every page, and never executed", async (t) => {
      const { platform, places } = await furnished(t);
      const browser = await openBrowser(t);
      const careless = await browser.newPage();
      await careless.setContent(`<p title="${HOSTILE[0]}">`);
      await careless.waitForFunction("window.owned === 1");
      await careless.close();
      for (const markup of HOSTILE) {
        const { page, complaints } = await visit(t, browser, platform);
        await page.route("**/v1/**", (route) => tamper(route, markup));
        let shown = 0;
        for (const place of places) {
          await page.goto(`${platform.base_url}/#/${place}`);
          await page.locator("main h1").waitFor();
          await page.locator(".loading").first().waitFor({ state: "detached" });
          assert.deepEqual(await page.evaluate(INJECTED), [], `${place}: ${markup}`);
          assert.equal(await page.evaluate("window.owned"), undefined, `${place}: ${markup}`);
          shown += (await page.locator("main").textContent())?.includes(markup.slice(0, 20)) ? 1 : 0;
        }
        t.diagnostic(`${markup.slice(0, 20)} was shown as text on ${shown} of ${places.length} pages`);
        assert.ok(shown >= 5, `${shown} pages showed it`);
        assert.deepEqual(complaints, [], "nothing was refused by the content policy, because nothing got that far");
        await page.context().close();
      }
    });
  });
