/** Overview and app pages in a real browser: one healthy app, one with a failing check, one asleep. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { axe, noBrowser } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { dashboard, openApp } from "./web-fixtures.ts";

const IMAGE = "registry.example/web:1";

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard: apps", { skip: noBrowser }, () => {
    const opened = dashboard();

    test("an empty platform shows how to begin, and runs the hello image with one click", async (t) => {
      const { page, complaints } = await opened.open(t);
      await page.getByRole("heading", { name: "Connect the command line" }).waitFor();
      await page.getByText("hangar launch").waitFor();
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Run it" }).click();
      await page.getByRole("heading", { name: "hello", exact: true }).waitFor();
      await page.getByText("healthy", { exact: true }).waitFor();
      await page.getByRole("link", { name: "http://hello.localhost:8080" }).waitFor();
      assert.deepEqual(complaints, []);
    });

    test("the overview shows every app with one state, and what fails on top with its reason", async (t) => {
      const services = [
        { protocol: "tcp", internal_port: 80, autostart: true, ports: [{ port: 8091, handlers: ["http"] }] },
      ];
      const checks = { alive: { type: "tcp", port: 80, interval: "1s" } };
      await openApp(opened, "sick", { image: IMAGE, checks, env: { SIM_CHECK: "refused" } });
      const { id } = await openApp(opened, "sleepy", { image: IMAGE, services });
      await opened.platform.ask(`POST /v1/apps/sleepy/machines/${id}/suspend`);
      const { page, complaints } = await opened.open(t);
      const row = (name: string) => page.getByRole("row", { name: new RegExp(name) });
      await row("sick").getByText("down").waitFor();
      await row("sleepy").getByText("asleep").waitFor();
      await row("sleepy").getByRole("link", { name: "sleepy.localhost:8091" }).waitFor();
      assert.match((await page.getByRole("row").nth(1).textContent()) ?? "", /sick/, "what fails is the first row");
      await page.getByRole("heading", { name: "Needs attention" }).waitFor();
      await page.getByText("check alive is critical").waitFor();
      assert.deepEqual(await axe(page), []);
      assert.deepEqual(complaints, []);
    });

    test("the app page shows why an app is down, its log lines, and a failing machine is not green", async (t) => {
      const { page, complaints } = await opened.open(t, "apps/sick");
      const machine = page.getByRole("row", { name: /sick-1/ });
      await machine.getByText("critical", { exact: true }).waitFor();
      assert.equal(await page.getByText("started", { exact: true }).count(), 0);
      await page.getByRole("group", { name: "Last log lines" }).getByText(`started ${IMAGE}`).first().waitFor();
      assert.equal(await page.getByRole("button", { name: "Roll back" }).isDisabled(), true, "there is no release");
      const tab = (name: string) =>
        page.getByRole("navigation", { name: "About this app" }).getByRole("link", { name });
      await tab("Releases and builds").click();
      await page.getByText("No builds yet.").waitFor();
      await tab("Settings").click();
      await page.getByText('"SIM_CHECK": "refused"').waitFor();
      assert.deepEqual(complaints, []);
    });

    test("a restart from the app page restarts the running machines after a question", async (t) => {
      const { page } = await opened.open(t, "apps/hello");
      await page.getByRole("button", { name: "Restart" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
      const [{ id }] = (await opened.platform.ask("GET /v1/apps/hello/machines")).body;
      await page.getByText("healthy", { exact: true }).waitFor();
      const { events } = (await opened.platform.ask(`GET /v1/apps/hello/machines/${id}`)).body;
      assert.ok(events.some(({ type }: { type: string }) => type === "restart"));
    });

    test("an address without a page says so, and so does an app that does not exist", async (t) => {
      const { page } = await opened.open(t);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.goto(`${opened.platform.base_url}/#/no-such-page`);
      await page.getByRole("heading", { name: "Not found" }).waitFor();
      await page.goto(`${opened.platform.base_url}/#/apps/nothing`);
      await page.getByText('Could not find App "nothing"').waitFor();
      await page.goto(`${opened.platform.base_url}/#/apps/hello/nothing`);
      await page.getByText("There is no page nothing of an app.").waitFor();
    });

    test("a read-only token sees the actions disabled, with the reason", async (t) => {
      const { page } = await opened.openReadOnly(t, "apps/hello");
      const restart = page.getByRole("button", { name: "Restart" });
      await restart.waitFor();
      assert.equal(await restart.isDisabled(), true);
      assert.equal(await restart.getAttribute("title"), "Your token can only read");
    });

    test("overview and app page fit a phone in dark, without violations of axe", async (t) => {
      const viewport = { width: 390, height: 844 };
      const { page } = await opened.open(t, undefined, { viewport, colorScheme: "dark", reducedMotion: "reduce" });
      for (const place of ["overview", "apps/sick", "apps/sleepy", "apps/hello/machines"]) {
        await page.goto(`${opened.platform.base_url}/#/${place}`);
        await page
          .getByText(/^(sick|sleepy|hello)-?\w*$/)
          .first()
          .waitFor();
        await page.locator(".loading").first().waitFor({ state: "detached" });
        assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, place);
        assert.deepEqual(await axe(page), [], place);
      }
    });
  });
}
