/** The dashboard in a real browser: what people do with it, on every page, by mouse and by keyboard. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { runs } from "../support.ts";
import { axe, noBrowser, openBrowser, visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";

const EVERY_PAGE = runs(0, 1) === 1;
const STEP_MS = 15_000;

/** A quarter of an hour of one machine's memory. */
async function measured(platform: TestPlatform, instance: string): Promise<void> {
  const end = Math.floor(systemClock.now() / STEP_MS) * STEP_MS;
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id as string;
  const samples = ["mem_total", "mem_available"].flatMap((name, i) =>
    Array.from({ length: 60 }, (_, n) => ({
      labels: labelsOf({ __name__: `svc_instance_memory_${name}`, app: "web", instance }),
      timestamp: end - (59 - n) * STEP_MS,
      value: 512e6 - i * (2e8 + n * 1e6),
    })),
  );
  await platform.metrics().append(org, seriesBatch(samples));
}

/** A quarter of an hour of a volume that is a quarter full. */
async function filled(platform: TestPlatform, id: string): Promise<void> {
  const end = Math.floor(systemClock.now() / STEP_MS) * STEP_MS;
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id as string;
  const samples = Object.entries({ svc_volume_size_bytes: 2 ** 30, svc_volume_used_pct: 25 }).flatMap(([name, value]) =>
    Array.from({ length: 60 }, (_, n) => ({
      labels: labelsOf({ __name__: name, app: "web", id }),
      timestamp: end - (59 - n) * STEP_MS,
      value,
    })),
  );
  await platform.metrics().append(org, seriesBatch(samples));
}

/** Two nodes of a replicated database, one of them behind. */
async function replicated(platform: TestPlatform): Promise<void> {
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id as string;
  const told: [string, number, number][] = [
    ["is_primary", 1, 0],
    ["term", 7, 7],
    ["lag_seconds", 0, 1.5],
    ["replicas", 1, 0],
    ["txid", 1200, 1190],
  ];
  const samples = told.flatMap(([name, ...values]) =>
    values.map((value, n) => ({
      labels: labelsOf({
        __name__: `hangar_db_${name}`,
        app: "ledger",
        instance: `node-${n}`,
        ...(name === "txid" ? { db: "app.db" } : {}),
      }),
      timestamp: systemClock.now() - 1000,
      value,
    })),
  );
  await platform.metrics().append(org, seriesBatch(samples));
}

/** Heads of tables whose last cell does not reach the end of the row. Where rows are shown as cards there are none. */
const RAGGED = `[...document.querySelectorAll("thead tr")].filter((row) => {
  const cells = [...row.cells].filter((cell) => cell.offsetWidth > 0);
  return cells.length > 1 && row.getBoundingClientRect().right - cells.at(-1).getBoundingClientRect().right > 2;
}).length`;

/** What is wrong with the page once it is drawn: for those who cannot see it, and for those on a phone. */
async function faults(page: Page, thorough: boolean): Promise<string[]> {
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
  const beyond = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  const ragged = await page.evaluate<number>(RAGGED);
  return [
    ...(thorough ? await axe(page) : []),
    ...(beyond > 0 ? [`${beyond} px too wide`] : []),
    ...(ragged > 0 ? ["the head of a table ends before its rows do"] : []),
  ];
}

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard", { skip: noBrowser }, () => {
    let browser: Browser;
    let platform: TestPlatform;
    let machine_id: string;
    let volume_id: string;
    let connection_id: string;

    const ends: (() => unknown)[] = [];
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });

    before(async () => {
      const t = { after: (end: () => unknown) => void ends.push(end) };
      platform = await testPlatform(t);
      browser = await openBrowser(t);
      await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
      const config = { image: "registry.example/web:1", checks: { alive: { type: "tcp", port: 8080 } } };
      const made = await platform.ask("POST /v1/apps/web/machines", { body: { name: "first", config } });
      machine_id = made.body.id;
      await platform.ask(`GET /v1/apps/web/machines/${machine_id}/wait?state=started`);
      const changed = { config: { ...config, env: { MODE: "fast" } } };
      const updated = await platform.ask(`POST /v1/apps/web/machines/${machine_id}`, { body: changed });
      await platform.ask("POST /v1/apps/web/secrets", { body: { values: { KEY: "value" } } });
      await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly", name: "eyes" } });
      const volume = await platform.ask("POST /v1/apps/web/volumes", { body: { name: "data", size_gb: 1 } });
      await platform.ask(`POST /v1/apps/web/volumes/${volume.body.id}/snapshots`);
      const connector = await platform.ask("POST /v1/oauth/connections/custom_api", {
        body: { name: "billing", base_api_url: "https://api.example.com", access_token: "key", auth_method: "header" },
      });
      assert.equal(connector.status, 201, connector.text);
      connection_id = connector.body.connection.id;
      volume_id = volume.body.id;
      await measured(platform, updated.body.instance_id);
      await filled(platform, volume_id);
      await replicated(platform);
    });

    test("a token signs in, a wrong one shows the platform's error, and signing out forgets it", async (t) => {
      const { page, complaints } = await visit(t, browser, { base_url: platform.base_url });
      await page.getByLabel("Token").fill("nonsense");
      await page.getByRole("button", { name: "Sign in" }).click();
      const { body } = await platform.ask("GET /v1/orgs", { token: "nonsense" });
      await page.getByRole("alert").getByText(body.error).waitFor();
      await page.getByLabel("Token").fill(platform.token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.getByText("live", { exact: true }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      assert.equal(await page.evaluate("'hangar.token' in sessionStorage"), false);
      assert.deepEqual(complaints, []);
    });

    test("a sign-in link works once, and says so when it is used again", async (t) => {
      const made = await platform.ask("POST /v1/tokens/sign_in_codes");
      const link = `${platform.base_url}/#/sign-in/${made.body.code}`;
      const { page } = await visit(t, browser, { base_url: link });
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      assert.equal(page.url().includes(made.body.code), false);
      const second = await visit(t, browser, { base_url: link });
      await second.page.getByText("this link was used already").waitFor();
    });

    test("a machine is created with the form, seen at once, stopped with others, and destroyed", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/machines/new`);
      await page.getByLabel("App").fill("fresh");
      await page.getByLabel("Image").fill("registry.example/fresh:2");
      await page.getByLabel("Name").fill("second");
      await page.getByLabel("Environment").fill("MODE=slow");
      assert.match(await page.getByLabel("Body of the request").inputValue(), /"MODE": "slow"/);
      await page.getByRole("button", { name: "curl" }).click();
      await page.getByText("curl -X POST").waitFor();
      await page.getByRole("button", { name: "Create machine" }).click();
      await page.getByRole("heading", { name: "second" }).waitFor();

      await page.getByRole("link", { name: "Machines", exact: true }).first().click();
      const row = page.getByRole("row", { name: /second/ });
      await row.getByText("started").waitFor();
      // Made by someone else, while the table is looked at.
      await platform.ask("POST /v1/apps/web/machines", { body: { name: "third", config: { image: "x/y:1" } } });
      await page.getByRole("row", { name: /third/ }).getByText("started").waitFor();

      await page.getByLabel("Select second").check();
      await page.getByLabel("Select third").check();
      await page.getByRole("toolbar").getByRole("button", { name: "Stop" }).click();
      await row.getByText("stopped").waitFor();
      await page.getByRole("row", { name: /third/ }).getByText("stopped").waitFor();
      await page.getByRole("toolbar").getByRole("button", { name: "Destroy" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Destroy them" }).click();
      await row.waitFor({ state: "detached" });
      await page.getByRole("row", { name: /third/ }).waitFor({ state: "detached" });
      assert.deepEqual(complaints, []);
    });

    test("a refusal is shown with its reason, and the input stays", async (t) => {
      const { page } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/machines/new?app=web`);
      await page
        .getByLabel("Body of the request")
        .fill('{"config":{"image":"x/y:1","restart":{"policy":"sometimes"}}}');
      await page.getByRole("button", { name: "Create machine" }).click();
      const alert = page.getByRole("alert");
      await alert.waitFor();
      assert.match((await alert.textContent()) ?? "", /config\.restart\.policy/);
      assert.match(await page.getByLabel("Body of the request").inputValue(), /sometimes/);
    });

    test("the machine page shows events with durations, logs, charts, version diffs and a terminal", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/machines/web/${machine_id}`);
      await page
        .getByText(/^\d+ ms$/)
        .first()
        .waitFor();
      const tab = (name: string) => page.getByRole("navigation", { name: "About" }).getByRole("link", { name }).click();
      await tab("Logs");
      await page.getByRole("log").getByText("started registry.example/web:1").first().waitFor();
      await page.getByLabel("Filter lines").fill("nothing like this");
      await page.getByText("No line matches.").waitFor();
      assert.match(page.url(), /q=nothing/, "the address holds the filter");
      await page.getByRole("button", { name: "Show all lines" }).click();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText(/paused$/).waitFor();
      await tab("Metrics");
      await page.locator("canvas").first().waitFor();
      await tab("Config");
      await page.getByText('+     "MODE": "fast"').waitFor();
      await tab("Terminal");
      await page.getByText("connected").waitFor();
      await page.keyboard.type("echo hello");
      await page.keyboard.press("Enter");
      await page
        .getByRole("log")
        .getByText(/^hello$/)
        .waitFor();
      await page.keyboard.type("exit 4");
      await page.keyboard.press("Enter");
      await page.getByText("the program has ended with 4").waitFor();
      await page.getByRole("button", { name: "Open again" }).click();
      await page.getByText("connected").waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a machine is found and opened with the keyboard alone", async (t) => {
      const { page } = await visit(t, browser, platform);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.getByRole("row").first().waitFor();
      await page.keyboard.press("Control+k");
      await page.keyboard.type("first");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "first" }).waitFor();
      await page.keyboard.press("Control+k");
      await page.keyboard.type("activ");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("nothing like this");
      await page.getByText("No event matches.").waitFor();
    });

    test("boards are drawn from Grafana's files", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/metrics`);
      await page.getByText("Memory by app").waitFor();
      await page.locator("canvas").first().waitFor();
      await page.getByRole("link", { name: "Volumes", exact: true }).last().click();
      await page.getByText("Used bytes").waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a query is completed while typing, drawn, and its errors are pointed at", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/metrics/explore`);
      await page.getByRole("button", { name: "svc_instance_memory_mem_total" }).waitFor();
      await page.locator(".cm-content").click();
      await page.keyboard.type("svc_instance_memory_mem_t");
      await page.getByRole("option", { name: "svc_instance_memory_mem_total" }).waitFor();
      await page.keyboard.press("Tab");
      const box = page.getByRole("textbox", { name: "Query" });
      await box.getByText("svc_instance_memory_mem_total").waitFor();
      await page.keyboard.press("Enter");
      await page.locator("canvas").waitFor();
      assert.match(page.url(), /query=svc_instance_memory_mem_total/, "the address holds the query");
      await box.fill("sum(");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("alert").waitFor();
      assert.deepEqual(complaints, [], "the editor keeps to the content policy");
    });

    test("a policy is read as rules and tried before it is saved, and the deciding rule is marked", async (t) => {
      const { page } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/connectors/${connection_id}`);
      await page.getByLabel("Machines whose name begins with").fill("agent-");
      await page.getByLabel("Blocked paths").fill("/admin/*");
      await page.getByLabel("Machine", { exact: true }).fill("agent-1");
      const ask = async (path: string): Promise<string> => {
        await page.getByLabel("Path", { exact: true }).fill(path);
        await page.getByRole("button", { name: "Test policy" }).click();
        const verdict = page.locator(".tester [role=status]");
        await verdict.getByText(path === "/admin/keys" ? /^No/ : /^Yes/).waitFor();
        return (await verdict.textContent()) ?? "";
      };
      const rules = page.getByRole("list", { name: "Rules, in order" });
      const decided = rules.locator("[aria-current]");
      await ask("/invoices");
      assert.match((await decided.textContent()) ?? "", /allow.*every other path/);
      assert.match(await ask("/admin/keys"), /admin/);
      assert.match((await decided.textContent()) ?? "", /deny.*paths that begin with \/admin\//);
      await page.getByLabel("Machine", { exact: true }).fill("web-1");
      await page.getByRole("button", { name: "Test policy" }).click();
      await decided.getByText("machines whose name does not begin with agent-").waitFor();
      await page.getByLabel("Blocked paths").fill("");
      await decided.waitFor({ state: "detached" });
    });

    test("the databases page shows the primary and the lag of the replicas", async (t) => {
      const { page, complaints } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/databases`);
      const table = page.getByRole("region", { name: "Nodes of ledger" });
      await table.getByRole("row", { name: /node-0 primary 7 - - 1 app\.db 1,?200/ }).waitFor();
      await table.getByRole("row", { name: /node-1 replica 7 10 transactions 1\.5 s/ }).waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a volume is restored from its snapshot, beside the original", async (t) => {
      const { page } = await visit(t, browser, platform);
      await page.goto(`${platform.base_url}/#/volumes/web/${volume_id}`);
      await page.getByRole("img", { name: /^Bytes: used .*; size 1\.0 GiB/ }).waitFor();
      const points = page.getByRole("list", { name: "Snapshots in this time" });
      await points.getByRole("button", { name: /^Restore / }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
      await page.waitForURL((url) => /volumes\/web\/vol_/.test(url.hash) && !url.hash.includes(volume_id));
      await page.getByText("created").first().waitFor();
    });

    test("a read-only token sees everything and is offered no action it may not take", async (t) => {
      const made = await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly", name: "guest" } });
      const { page } = await visit(t, browser, { base_url: platform.base_url, token: made.body.token });
      await page.goto(`${platform.base_url}/#/machines/web/${machine_id}`);
      await page.getByRole("heading", { name: "first" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Destroy" }).count(), 0);
      await page.goto(`${platform.base_url}/#/metrics?query=svc_instance_memory_mem_total`);
      await page.locator("canvas").waitFor();
    });

    test("a long unbreakable path does not make a page wider than a phone", async (t) => {
      const { page } = await visit(t, browser, platform, { viewport: { width: 400, height: 860 } });
      await page.route("**/v1/platform/disk", async (route) => {
        const response = await route.fetch();
        const disk = (await response.json()) as { objects: { place: string } };
        disk.objects.place = `/var/lib/${"long".repeat(20)}`;
        await route.fulfill({ response, json: disk });
      });
      await page.goto(`${platform.base_url}/#/volumes`);
      await page.getByText("longlong").waitFor();
      assert.deepEqual(await faults(page, false), []);
    });

    test("every page passes axe, in light and dark, and fits 400 pixels", async (t) => {
      const places = [
        ..."overview machines machines/new apps activity hosts tokens settings images identity services databases".split(
          " ",
        ),
        ...[
          "",
          ...["machines", "releases", "previews", "logs", "metrics", "services", "storage", "secrets", "settings"].map(
            (id) => `/${id}`,
          ),
        ].map((tab) => `apps/web${tab}`),
        ...["", "/logs", "/metrics", "/checks", "/config", "/terminal"].map(
          (tab) => `machines/web/${machine_id}${tab}`,
        ),
        "volumes",
        `volumes/web/${volume_id}`,
        "connectors",
        `connectors/${connection_id}`,
        "metrics?query=svc_instance_memory_mem_total",
        "metrics/edge",
      ];
      const wrong: string[] = [];
      for (const colorScheme of ["light", "dark"] as const) {
        const narrow = colorScheme === "dark";
        const viewport = { width: narrow ? 400 : 1280, height: 860 };
        const tab = await visit(t, browser, platform, { colorScheme, viewport, reducedMotion: "reduce" });
        for (const [index, place] of places.entries()) {
          await tab.page.goto(`${platform.base_url}/#/${place}`);
          // Half of the work at every push: each page is looked at in one of the two.
          const found = await faults(tab.page, EVERY_PAGE || index % 2 === Number(narrow));
          wrong.push(...found.map((fault) => `${place} (${colorScheme}, ${viewport.width} px): ${fault}`));
        }
        assert.deepEqual(tab.complaints, []);
      }
      assert.deepEqual(wrong, []);
    });
  });
}
