/** The Alerts page in a real browser, with rules that the platform evaluates and a receiver. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { until } from "../support.ts";
import { axe, noBrowser } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { dashboard, openApp } from "./web-fixtures.ts";

const ALERTS = "/v1/orgs/personal/alerts";
const SECRET = "hook-token-of-the-test";
/** How far the form reaches beyond its dialog. */
const SIDEWAYS = "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth";
/** Pixels of charts in the colour of bands: red, and hardly seen through. */
const SHADED = `[...document.querySelectorAll("canvas")].reduce((sum, canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] > 200 && data[i + 1] < 60 && data[i + 2] < 60 && data[i + 3] > 10 && data[i + 3] < 60) count++;
  return sum + count;
}, 0)`;
const RULES = JSON.stringify({
  groups: [
    {
      name: "queues",
      interval: "1s",
      rules: [
        {
          alert: "QueueTooLong",
          expr: "last_over_time(queue_length[1h]) > 5",
          labels: { severity: "critical" },
          annotations: {
            summary: "{{ $value }} jobs wait",
            description: "Scale the workers: `hangar scale count 4 --app {{ $labels.app }}`",
          },
        },
        { alert: "QueueGrows", expr: "last_over_time(queue_length[1h]) > 1", for: "1h" },
      ],
    },
  ],
});

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard: alerts", { skip: noBrowser }, () => {
    let machine_id: string;
    let other_id: string;
    const opened = dashboard(async ({ platform, after }) => {
      const told = createServer((request, response) => void request.resume().on("end", () => response.end()));
      await new Promise<void>((resolve) => told.listen(0, "127.0.0.1", resolve));
      after(() => told.close());
      const { port } = told.address() as { port: number };
      const org = (await platform.ask("GET /v1/orgs/personal")).body.id;
      const machine = async (name: string, series: Record<string, number>): Promise<string> => {
        const { id, instance_id } = await openApp({ platform }, "jobs", { name });
        const samples = Object.entries(series).map(([metric, value]) => ({
          labels: labelsOf({ __name__: metric, app: "jobs", instance: instance_id }),
          timestamp: systemClock.now(),
          value,
        }));
        await platform.metrics().append(org, seriesBatch(samples));
        return id;
      };
      const memory = { svc_instance_memory_mem_total: 2 ** 28, svc_instance_memory_mem_available: 2 ** 27 };
      machine_id = await machine("jobs-1", { queue_length: 9, ...memory });
      other_id = await machine("jobs-2", { queue_length: 0, ...memory });
      const content = JSON.stringify({
        route: { receiver: "operator", group_wait: "0s", group_interval: "1s" },
        receivers: [{ name: "operator", webhook_configs: [{ url: `http://127.0.0.1:${port}/hook`, token: SECRET }] }],
      });
      assert.equal((await platform.ask(`PUT ${ALERTS}/receivers`, { body: { content } })).status, 200);
      assert.equal((await platform.ask(`PUT ${ALERTS}/rules/queues`, { body: { content: RULES } })).status, 200);
      await until("the rules fire and the receiver is told", async () => {
        const { notifications } = (await platform.ask(`GET ${ALERTS}/notifications`)).body;
        return notifications.some(({ state }: { state: string }) => state === "delivered");
      });
    });

    test("firing alerts are listed with links and what to do, also on the app and the overview", async (t) => {
      const { page, complaints } = await opened.open(t);
      const card = page.locator(".card", { has: page.getByRole("heading", { name: "Alerts", exact: true }) });
      await card.getByText("9 jobs wait").waitFor();
      await card.getByRole("link", { name: "jobs", exact: true }).click();
      await page.getByRole("heading", { name: "jobs", exact: true }).waitFor();
      await card.getByText("hangar scale count 4 --app jobs").waitFor();
      await card.getByRole("link", { name: "All alerts" }).click();
      const firing = page.getByRole("row", { name: /QueueTooLong/ });
      await firing.getByText("firing", { exact: true }).waitFor();
      await firing.getByText("hangar scale count 4 --app jobs").waitFor();
      assert.equal(await firing.getByRole("link", { name: "jobs-1" }).count(), 1, "the machine by its name");
      await page
        .getByRole("row", { name: /QueueGrows/ })
        .getByText("pending", { exact: true })
        .waitFor();
      await firing.getByRole("link", { name: "jobs-1" }).click();
      await page.getByRole("heading", { name: "jobs-1" }).waitFor();
      assert.deepEqual(complaints, []);
    });

    test("charts of the app and of its machine are shaded while an alert fired, those of another machine are not", async (t) => {
      const { page, complaints } = await opened.open(t);
      for (const place of [
        "apps/jobs",
        "apps/jobs/metrics",
        `machines/jobs/${machine_id}/metrics`,
        "metrics/apps?app=jobs",
      ]) {
        await page.goto(`${opened.platform.base_url}/#/${place}`);
        await page.getByText("Shaded: while QueueTooLong fired.").first().waitFor();
        await until(`a chart of ${place} is shaded`, async () => Number(await page.evaluate(SHADED)) > 0);
      }
      await page.goto(`${opened.platform.base_url}/#/machines/jobs/${other_id}/metrics`);
      await page.locator("canvas").first().waitFor();
      assert.equal(await page.getByText("Shaded:").count(), 0);
      assert.deepEqual(complaints, []);
    });

    test("receivers, messages and rule files are shown, secrets are not", async (t) => {
      const { page, complaints } = await opened.open(t, "alerts/receivers");
      const messages = page.getByRole("region", { name: "Messages" });
      await messages.getByText("delivered", { exact: true }).first().waitFor();
      await page.getByText("<secret>").waitFor();
      assert.equal((await page.content()).includes(SECRET), false);
      await page.getByRole("button", { name: "Send a test alert" }).click();
      await page.getByText("operator got a test alert.").waitFor();
      await page.getByRole("link", { name: "Rules", exact: true }).click();
      await page.getByRole("row", { name: /^default the platform/ }).waitFor();
      await page.getByRole("link", { name: "queues" }).click();
      await page.getByText("last_over_time(queue_length[1h])").first().waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a link of a message leads to the alerts of its organization, Prometheus' graph link to its query", async (t) => {
      const { page } = await opened.open(t);
      await page.goto(`${opened.platform.base_url}/ui/personal`);
      await page.getByRole("row", { name: /QueueTooLong/ }).waitFor();
      await page.goto(`${opened.platform.base_url}/ui/no%22where%3Ca%3E`);
      await page.getByRole("alert").getByText('no"where<a>').waitFor();
      await page.goto(`${opened.platform.base_url}/ui/personal/graph?g0.expr=queue_length%20%3E%205&g0.tab=0`);
      await page.getByRole("textbox", { name: "Query" }).getByText("queue_length > 5").waitFor();
    });

    test("a read-only token sees alerts, and may not silence them", async (t) => {
      const { page } = await opened.openReadOnly(t, "alerts");
      const silence = page.getByRole("row", { name: /QueueTooLong/ }).getByRole("button", { name: "Silence" });
      await silence.waitFor();
      assert.equal(await silence.isDisabled(), true);
      assert.equal(await silence.getAttribute("title"), "Your token can only read");
    });

    for (const colorScheme of ["light", "dark"] as const)
      test(`the pages of alerts pass axe and fit a phone (${colorScheme})`, async (t) => {
        const viewport = { width: colorScheme === "dark" ? 390 : 1280, height: 860 };
        const { page } = await opened.open(t, undefined, { viewport, colorScheme, reducedMotion: "reduce" });
        for (const place of ["alerts", "alerts/silences", "alerts/receivers", "alerts/rules", "alerts/rules/default"]) {
          await page.goto(`${opened.platform.base_url}/#/${place}`);
          await page.getByRole("heading", { name: "Alerts" }).waitFor();
          await page.locator(".loading").first().waitFor({ state: "detached" });
          assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, place);
          assert.deepEqual(await axe(page), [], place);
        }
      });

    test("an alert is silenced with a form and notified again when the silence ends", async (t) => {
      const { page, complaints } = await opened.open(t, "alerts");
      const row = page.getByRole("row", { name: /QueueTooLong/ });
      await row.getByRole("button", { name: "Silence" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("For").fill("soon");
      await dialog.getByLabel("Comment").fill("it's a deploy");
      await dialog.getByRole("button", { name: "Silence" }).click();
      await dialog.getByRole("alert").getByText("body.duration is no duration such as 30m or 2h").first().waitFor();
      await dialog.getByLabel("For").fill("30m");
      assert.deepEqual(await axe(page), []);
      const beyond = await page.evaluate(SIDEWAYS);
      assert.equal(beyond, 0, "the form fits its dialog");
      await dialog.getByRole("button", { name: "Silence" }).click();
      await row.getByText("silenced", { exact: true }).waitFor();
      const [silence] = (await opened.platform.ask(`GET ${ALERTS}/silences`)).body.silences;
      assert.equal(silence.comment, "it's a deploy");
      assert.ok(silence.matchers.includes('alertname="QueueTooLong"'));
      await page.getByRole("link", { name: "Silences" }).click();
      await page
        .getByRole("row", { name: /it's a deploy/ })
        .getByRole("button", { name: "End now" })
        .click();
      await page.getByText("No silences.").waitFor();
      assert.deepEqual((await opened.platform.ask(`GET ${ALERTS}/silences`)).body.silences, []);
      assert.deepEqual(complaints, []);
    });
  });
}
