/**
 * Markup in what arrives live while somebody looks at the dashboard in a real browser: lines of followed logs, reasons of
 * events, names, sources and states. Between the browser and the platform is a server that changes streams alone, so what is
 * shown of it came over a stream.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { suite, type TestContext, test } from "node:test";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { until } from "../support.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { HOSTILE, nothingRan, runsWhereCareless, tampered } from "./hostile-texts.ts";
import { ownNetwork } from "./own-network.ts";

/** By these the page knows whose a message is, and where it left off. */
const KEPT = /^(id|machine_id|app_name|instance_id|level)$/;
const DATA = "data: ";

interface Between {
  base_url: string;
  /** What streams hold from now on. */
  markup: string;
  /** Messages that were changed. */
  changed: number;
}

/** Passes everything on, and changes streams message by message. */
async function between(t: TestContext, platform: TestPlatform): Promise<Between> {
  const { hostname, port } = new URL(platform.base_url);
  const state: Between = { base_url: "", markup: "", changed: 0 };
  const pass = (answer: IncomingMessage, response: ServerResponse): void => {
    answer.on("error", () => response.destroy());
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    if (!answer.headers["content-type"]?.startsWith("text/event-stream")) return void answer.pipe(response);
    response.flushHeaders();
    const lines = createInterface({ input: answer }).on("error", () => {});
    lines.on("line", (line) => {
      if (!line.startsWith(DATA)) return void response.write(`${line}\n`);
      const message = JSON.parse(line.slice(DATA.length)) as { request?: object };
      if ("request" in message || "status" in message) message.request = { ...message.request, reason: "because" };
      state.changed++;
      response.write(`${DATA}${JSON.stringify(tampered(message, state.markup, KEPT))}\n`);
    });
    answer.on("close", () => response.end());
  };
  const server = createServer((asked, response) => {
    const { method, url, headers } = asked;
    const to = { hostname, port, method, path: url, headers: { ...headers, host: `${hostname}:${port}` } };
    const passed = request(to, (answer) => pass(answer, response)).on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  state.base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

async function aMachine(platform: TestPlatform) {
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const body = { name: "first", config: { image: "registry.example/web:1" } };
  const { id } = (await platform.ask("POST /v1/apps/web/machines", { body })).body as { id: string };
  const reach = async (verb: string, state: string): Promise<void> => {
    const answer = await platform.ask(`POST /v1/apps/web/machines/${id}/${verb}`);
    assert.equal(answer.status, 200, answer.text);
    await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=${state}`);
  };
  await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=started`);
  /** Makes events and log lines while the page is open. */
  const happen = async (): Promise<void> => {
    await reach("stop", "stopped");
    await reach("start", "started");
  };
  return { id, happen };
}

if (await ownNetwork(import.meta.filename))
  suite("hostile texts in streams that the dashboard follows", { skip: noBrowser }, () => {
    test("are shown as text as they arrive, and never run", async (t) => {
      const platform = await testPlatform(t);
      const { id, happen } = await aMachine(platform);
      const proxy = await between(t, platform);
      const browser = await openBrowser(t);
      await runsWhereCareless(browser);
      const places = [
        `machines/web/${id}/logs`,
        "apps/web/logs",
        "activity",
        `machines/web/${id}`,
        "overview",
        "machines",
      ];
      for (const markup of HOSTILE) {
        proxy.markup = markup;
        const { page, complaints } = await visit(t, browser, { base_url: proxy.base_url, token: platform.token });
        const shown: string[] = [];
        for (const place of places) {
          await page.goto(`${proxy.base_url}/#/${place}`);
          await page.locator("main h1").waitFor();
          const before = proxy.changed;
          await happen();
          const sign = markup.slice(0, 20);
          // Those that show texts of streams; the others show states that they know.
          if (places.indexOf(place) < 3) await page.locator("main", { hasText: sign }).waitFor();
          await until("something arrives", () => proxy.changed > before);
          await nothingRan(page, `${place}: ${markup}`);
          if ((await page.locator("main").textContent())?.includes(sign)) shown.push(place);
        }
        t.diagnostic(`${markup.slice(0, 20)} arrived live, and was shown as text on ${shown.join(", ")}`);
        assert.deepEqual(complaints, [], "nothing was refused by the content policy, because nothing got that far");
        await page.context().close();
      }
    });
  });
