/** The app's page lists failed requests; their links lead to the machine and to the log lines with the request id. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { testPlatform } from "../platform.ts";
import { until } from "../support.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";

suite("requests in the dashboard", () => {
  test("a failed request links to its machine and to its log lines", { skip: noBrowser }, async (t) => {
    const backend = await aBackend(t, (request, response) => {
      response.statusCode = request.url?.startsWith("/fails") ? 500 : 200;
      response.end();
    });
    const port = await freePort();
    const reach = () => ({ host: "127.0.0.1", port: backend.port });
    const platform = await testPlatform(t, { HANGAR_PROXY_WORKERS: "1" }, { reach });
    await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
    await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port, handlers: ["http"] }] }];
    const config = { image: "web:1", services };
    const { id } = (await platform.ask("POST /v1/apps/web/machines", { body: { name: "front", config } })).body;
    await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=started`);
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { host: "web.localhost", traceparent: `00-${trace}-00f067aa0ba902b7-01` };
    const answer = await fetch(`http://127.0.0.1:${port}/fails?password=x`, { headers });
    const request_id = String(answer.headers.get("svc-request-id"));
    await until("it is listed", async () => {
      const { requests } = (await platform.ask("GET /v1/apps/web/requests")).body;
      return requests.length === 1;
    });
    const { page, complaints } = await visit(t, await openBrowser(t), platform);
    await page.goto(`${platform.base_url}/#/apps/web`);
    const row = page.getByRole("row", { name: /\/fails/ });
    await row.waitFor();
    const words = String(await row.textContent());
    for (const word of ["GET /fails", "500", "front", request_id, trace.slice(0, 8)])
      assert.ok(words.includes(word), word);
    assert.doesNotMatch(words, /password/);
    const picture = process.env["HANGAR_PICTURE"];
    if (picture) await page.screenshot({ path: picture, fullPage: true });
    assert.equal(await row.getByRole("link", { name: "front" }).getAttribute("href"), `#/machines/web/${id}`);
    await row.getByRole("link", { name: request_id }).click();
    const filter = page.getByRole("searchbox", { name: "Filter lines" });
    await filter.waitFor();
    assert.equal(await filter.inputValue(), request_id);
    assert.deepEqual(complaints, []);
  });
});
