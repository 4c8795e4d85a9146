/** Deploy, scale, roll back and undo on an app's page, in a real browser: what will happen is shown first, then it happens. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import type { Page } from "playwright-core";
import { tempDir } from "../support.ts";
import { axe, noBrowser, type visit } from "./browser.ts";
import { ownNetwork } from "./own-network.ts";
import { dashboard } from "./web-fixtures.ts";

/** A deploy watches its machines for five seconds, on a box that may be busy. */
const DEPLOY_MS = 240_000;

/** A small root file system, packed by the box's own tar. */
function packed(): Buffer {
  const dir = tempDir();
  writeFileSync(join(dir, "hi"), "hello\n");
  return execFileSync("tar", ["-C", dir, "-cf", "-", "."]);
}

if (await ownNetwork(import.meta.filename)) {
  suite("dashboard: deploy, scale and roll back", { skip: noBrowser }, () => {
    const opened = dashboard(async ({ platform }) => {
      await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    });

    const dialog = (page: Page) => page.getByRole("dialog");
    const done = (page: Page, text: string) => dialog(page).getByText(text).waitFor({ timeout: DEPLOY_MS });
    const images = async (): Promise<string[]> =>
      (await opened.platform.ask("GET /v1/apps/web/machines")).body.map(
        ({ config }: { config: { image: string } }) => config.image.split("@")[0],
      );
    const open = async (t: Parameters<typeof visit>[0], options?: object) => {
      const visited = await opened.open(t, "apps/web", options);
      await visited.page.getByRole("button", { name: "Deploy" }).waitFor();
      return visited;
    };

    test("the first deploy shows its plan, its request elsewhere and its output", async (t) => {
      const { page, complaints } = await open(t);
      await page.getByRole("button", { name: "Deploy" }).click();
      await dialog(page).getByLabel("Port").fill("70000");
      await dialog(page).getByLabel("Image").fill("shop/web:1");
      await dialog(page).locator(".hint.error").waitFor();
      assert.equal(await dialog(page).getByRole("button", { name: "Deploy" }).isDisabled(), true);
      await dialog(page).getByLabel("Port").fill("8080");
      await dialog(page).getByText("create a machine, group app").waitFor();
      await dialog(page).getByText("hangar deploy --image=shop/web:1 --port=8080 --app=web").waitFor();
      await dialog(page).getByRole("button", { name: "TypeScript" }).click();
      await dialog(page).getByText('client.call("POST /v1/apps/:app_name/deployments"').waitFor();
      assert.deepEqual(await axe(page), []);
      await dialog(page).getByRole("button", { name: "Deploy" }).click();
      await dialog(page).getByText("Release 1 of web").waitFor({ timeout: DEPLOY_MS });
      await done(page, "Done: release v1 runs.");
      await dialog(page).getByRole("button", { name: "Close" }).click();
      assert.deepEqual(await images(), ["shop/web:1"]);
      assert.deepEqual(complaints, []);
    });

    test("scale shows the machines that come, and is undone with one click", async (t) => {
      const { page, complaints } = await open(t);
      await page.getByRole("button", { name: "Scale" }).click();
      await dialog(page).getByLabel("Machines", { exact: true }).fill("2");
      await dialog(page).getByText("create a machine, group app").waitFor();
      await dialog(page).getByRole("button", { name: "Scale", exact: true }).click();
      await done(page, "Done: release v2 runs.");
      assert.equal((await images()).length, 2);
      await dialog(page).getByRole("button", { name: "Scale back" }).click();
      await done(page, "Done: release v3 runs.");
      assert.equal((await images()).length, 1);
      assert.deepEqual(complaints, []);
    });

    test("roll back shows what differs, and the release runs again", async (t) => {
      const deployed = await opened.platform.ask("POST /v1/apps/web/deployments", {
        body: { action: "deploy", image: "shop/web:2", message: "faster" },
      });
      assert.equal(deployed.body.version, 4);
      const viewport = { width: 390, height: 844 };
      const { page, complaints } = await open(t, { viewport, colorScheme: "dark" });
      await page.getByRole("button", { name: "Roll back" }).click();
      await dialog(page).getByText('"image": "shop/web:1",').waitFor();
      await dialog(page)
        .getByText(/^update .*group app$/)
        .waitFor();
      assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0);
      assert.deepEqual(await axe(page), []);
      await dialog(page).getByRole("button", { name: "Roll back", exact: true }).click();
      await done(page, "Done: release v5 runs.");
      assert.deepEqual(await images(), ["shop/web:1"]);
      assert.deepEqual(complaints, []);
    });

    test("what is wrong with a request is shown at its field", async (t) => {
      const { page } = await open(t);
      await page.getByRole("button", { name: "Deploy" }).click();
      await dialog(page).getByLabel("Image").fill("--help");
      await dialog(page).locator(".hint.error").waitFor();
      assert.equal(await dialog(page).getByLabel("Image").getAttribute("aria-invalid"), "true");
    });

    test("an image is uploaded from a file, and a stopped machine is started from its terminal", async (t) => {
      const { page, complaints } = await opened.open(t, "images");
      await page
        .getByLabel("File of an image")
        .setInputFiles({ name: "tiny.tar", mimeType: "application/x-tar", buffer: packed() });
      await page.getByLabel("Name of the image").fill("shop/tiny:1");
      await page.getByRole("button", { name: "Upload" }).click();
      await page.getByText("shop/tiny:1 is here.").waitFor();
      await page.getByRole("row", { name: /shop\/tiny:1 imported .* nothing: can be removed/ }).waitFor();
      const [{ id: machine_id }] = (await opened.platform.ask("GET /v1/apps/web/machines")).body;
      await opened.platform.ask(`POST /v1/apps/web/machines/${machine_id}/stop`, { body: {} });
      await opened.platform.ask(`GET /v1/apps/web/machines/${machine_id}/wait?state=stopped`);
      await page.goto(`${opened.platform.base_url}/#/machines/web/${machine_id}/terminal`);
      await page.getByRole("button", { name: "Start it" }).click();
      await page.getByText("connected").waitFor();
      assert.deepEqual(complaints, []);
    });

    test("an action on a machine and the documentation are found by their names", async (t) => {
      const { page } = await opened.open(t);
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.keyboard.press("Control+K");
      await page.keyboard.type("cordon web");
      await page.getByRole("option", { name: /^Cordon .*web action/ }).waitFor();
      await page.keyboard.type(" nothing");
      await page.getByText("No match.").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+K");
      await page.keyboard.type("openapi");
      await page.getByRole("option", { name: /API reference/ }).waitFor();
    });

    test("a read-only token sees the actions disabled, with the reason", async (t) => {
      const { page } = await opened.openReadOnly(t, "apps/web");
      const deploy = page.getByRole("button", { name: "Deploy" });
      await deploy.waitFor();
      assert.equal(await deploy.isDisabled(), true);
      assert.equal(await deploy.getAttribute("title"), "Your token can only read");
    });
  });
}
