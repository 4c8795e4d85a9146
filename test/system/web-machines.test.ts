/** The dashboard over real machines: what people do in a day, from an image dropped on a page to an app that fails and says why. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { digestOf, tarOf } from "./build-context.ts";
import { nodeIdOf } from "./leaks.ts";
import { ownMachines } from "./own-network.ts";

const DEPLOY_MS = 240_000;
/** A web server of one page; `/up` is what its check asks for. */
const SERVE = "echo warming the cache; echo listening on 8080; exec httpd -f -p '[::]:8080' -h /www";

const MOST_BYTES = 64 * 1024 * 1024;
const hash = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");

/** An image as `docker save` writes it. */
function archive(tag: string, text: string): Buffer {
  const dir = tempDir();
  const root = busyboxLayer(join(dir, "root"));
  mkdirSync(join(root, "www"));
  writeFileSync(join(root, "www/index.html"), `<h1>${text}</h1>`);
  writeFileSync(join(root, "www/up"), "yes\n");
  const layer = execFileSync("tar", ["-C", root, "-cf", "-", "."], { maxBuffer: MOST_BYTES });
  const diff_id = hash(layer);
  const config = JSON.stringify({
    architecture: "amd64",
    os: "linux",
    config: { Cmd: ["sh", "-c", SERVE] },
    rootfs: { type: "layers", diff_ids: [`sha256:${diff_id}`] },
  });
  const [config_file, layer_file] = [`${hash(config)}.json`, `${diff_id}.tar`];
  const manifest = JSON.stringify([{ Config: config_file, RepoTags: [tag], Layers: [layer_file] }]);
  writeFileSync(join(dir, config_file), config);
  writeFileSync(join(dir, layer_file), layer);
  writeFileSync(join(dir, "manifest.json"), manifest);
  return execFileSync("tar", ["-C", dir, "-cf", "-", "manifest.json", config_file, layer_file], {
    maxBuffer: MOST_BYTES,
  });
}

/** In the page: the file is dragged over the field and let go there. */
const dropped = (bytes: Buffer, name: string): string => `(() => {
  const bytes = Uint8Array.from(atob(${JSON.stringify(bytes.toString("base64"))}), (character) => character.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], ${JSON.stringify(name)}, { type: "application/x-tar" }));
  const field = document.querySelector("input[type=file]");
  for (const type of ["dragenter", "dragover", "drop"])
    field.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
})()`;

/** A build of this Dockerfile, begun. */
async function build({ base_url, token, ask }: TestPlatform, dockerfile: string): Promise<string> {
  const bytes = Buffer.from(dockerfile);
  const sent = await fetch(`${base_url}/v1/apps/shop/builds/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/x-tar" },
    body: new Uint8Array(tarOf([bytes])),
  });
  assert.equal(sent.status, 200, await sent.text());
  const files = [{ path: "Dockerfile", sha256: digestOf(bytes) }];
  const made = await ask("POST /v1/apps/shop/builds", { body: { files } });
  assert.equal(made.status, 201, made.text);
  return made.body.id as string;
}

const missing = realMachinesMissing() ?? noBrowser;

if (missing !== undefined || (await ownMachines(import.meta.filename))) {
  suite("dashboard over real machines", { skip: missing }, () => {
    const data_dir = tempDir();
    const ends: (() => unknown)[] = [];
    const scope = { after: (end: () => unknown) => void ends.push(end) };
    let platform: TestPlatform;
    let browser: Browser;

    before(async () => {
      platform = await testPlatform(scope, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
      browser = await openBrowser(scope);
      await platform.ask("POST /v1/apps", { body: { app_name: "shop" } });
    });
    after(async () => {
      for (const end of ends.toReversed()) await end();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
    });

    const open = async (t: Parameters<typeof visit>[0], place: string): Promise<Page> => {
      // The platform made the certificate of `shop.localhost` itself.
      const { page } = await visit(t, browser, platform, { ignoreHTTPSErrors: true });
      await page.goto(`${platform.base_url}/#/${place}`);
      return page;
    };
    /** What the app answers under the URL on its page, in a tab of its own. */
    const served = async (page: Page, wanted: string, link = page.locator("a.url")): Promise<void> => {
      const url = await link.getAttribute("href");
      const tab = await page.context().newPage();
      let said: string | null = "";
      await until(
        `the app under ${url} says ${wanted}`,
        async () => {
          // The network changes with every machine, and a browser gives up what it loads then.
          await tab.goto(url ?? "").catch((thrown: unknown) => (said = String(thrown)));
          said = await tab.locator("body").textContent();
          return said?.trim() === wanted;
        },
        { every_ms: 200 },
      ).catch((thrown: unknown) => assert.fail(`${String(thrown)}; it says ${said}`));
      await tab.close();
    };
    const action = async (page: Page, name: string, fill: (dialog: ReturnType<Page["getByRole"]>) => Promise<void>) => {
      await page.getByRole("button", { name, exact: true }).click();
      const dialog = page.getByRole("dialog");
      await fill(dialog);
      await dialog.getByRole("button", { name, exact: true }).click();
      const ended = dialog.getByText(/^(Done: release v\d+ runs\.|Failed: )/).first();
      await ended.waitFor({ timeout: DEPLOY_MS }).catch(() => {});
      assert.match((await dialog.textContent()) ?? "", /Done: release v\d+ runs/);
      await dialog.getByRole("button", { name: "Close" }).click();
    };

    test("images are dropped on the page, deployed, opened under their URL and rolled back", async (t) => {
      const page = await open(t, "images");
      for (const [tag, text] of [
        ["shop:1", "one"],
        ["shop:2", "two"],
      ] as const) {
        await page.getByLabel("File of an image").waitFor();
        await page.evaluate(dropped(archive(tag, text), `${text}.tar`));
        await page.getByLabel("Name of the image").fill(tag);
        await page.getByRole("button", { name: "Upload" }).click();
        await page.getByText(`${tag} is here.`).waitFor();
      }
      await page.goto(`${platform.base_url}/#/apps/shop`);
      await action(page, "Deploy", async (dialog) => {
        await dialog.getByLabel("Image").fill("shop:1");
        await dialog.getByLabel("Port").fill("8080");
        await dialog.getByText("create a machine, group app").waitFor();
      });
      await served(page, "one");
      await action(page, "Deploy", async (dialog) => dialog.getByLabel("Image").fill("shop:2"));
      await served(page, "two");
      await action(page, "Roll back", async (dialog) =>
        dialog
          .getByText(/"image": "shop:1/)
          .first()
          .waitFor(),
      );
      await served(page, "one");
    });

    test("a machine is entered, its logs are searched, and a check that begins to fail is seen with its reason", async (t) => {
      const page = await open(t, "apps/shop");
      await action(page, "Scale", async (dialog) => dialog.getByLabel("Machines", { exact: true }).fill("2"));
      const checks = { alive: { type: "http", port: 8080, path: "/up", interval: "1s", timeout: "1s" } };
      const machines: { id: string; name: string }[] = (await platform.ask("GET /v1/apps/shop/machines")).body;
      for (const { id } of machines) {
        const changed = await platform.ask(`PATCH /v1/apps/shop/machines/${id}`, { body: { config: { checks } } });
        assert.equal(changed.status, 200, changed.text);
        await platform.ask(`GET /v1/apps/shop/machines/${id}/wait?state=healthy&timeout=60`);
      }
      await page.getByText("healthy", { exact: true }).waitFor();

      await page.goto(`${platform.base_url}/#/machines/shop/${machines[0]?.id}/terminal`);
      await page.getByText("connected").waitFor();
      await page.keyboard.type("id");
      await page.keyboard.press("Enter");
      await page.getByRole("log").getByText("uid=0(root)").waitFor();
      await page.keyboard.type("rm /www/up");
      await page.keyboard.press("Enter");

      await page.goto(`${platform.base_url}/#/apps/shop`);
      await page.locator(".app-head").getByText("degraded", { exact: true }).waitFor();
      await page
        .locator(".app-head")
        .getByText(/check alive is critical/)
        .waitFor();
      const row = page.getByRole("row", { name: new RegExp(machines[0]?.name ?? "") });
      await row.getByText("critical", { exact: true }).waitFor();
      await page.goto(`${platform.base_url}/#/overview`);
      await page.getByRole("heading", { name: "Needs attention" }).waitFor();
      await page
        .getByText(/check alive is critical/)
        .first()
        .waitFor();
      await served(await open(t, "apps/shop"), "one");

      await page.goto(`${platform.base_url}/#/apps/shop/logs`);
      await page.getByText("listening on 8080").first().waitFor();
      await page.getByLabel("Filter lines").fill("cache");
      await page.getByText("warming the cache").first().waitFor();
      await page.getByText("listening on 8080").first().waitFor({ state: "detached" });
    });

    test("a build and its deploy are watched on Overview, and a build that fails says where", {
      skip: buildahMissing(),
    }, async (t) => {
      const page = await open(t, "overview");
      await page.getByRole("heading", { name: "Apps" }).waitFor();
      await build(platform, "FROM shop:1\nRUN sleep 10\nRUN echo three > /www/index.html\n");
      await page.getByRole("row", { name: /building shop 2\/3 RUN sleep 10/ }).waitFor({ timeout: DEPLOY_MS });
      await page.getByRole("heading", { name: "Running now" }).waitFor({ state: "detached", timeout: DEPLOY_MS });
      const [built] = (await platform.ask("GET /v1/orgs/personal/builds?state=complete")).body.builds;
      assert.deepEqual([built.app_name, built.step], ["shop", "3/3 RUN echo three > /www/index.html"]);

      const body = { action: "deploy", image: `builds/shop:latest@${built.digest}` };
      const deployed = platform.ask("POST /v1/apps/shop/deployments", { body });
      await page.getByRole("row", { name: /deploying shop v\d+ · / }).waitFor({ timeout: DEPLOY_MS });
      assert.equal((await deployed).status, 200);
      await page.getByRole("heading", { name: "Running now" }).waitFor({ state: "detached" });
      await served(await open(t, "apps/shop"), "three");

      await build(platform, "FROM shop:1\nRUN echo no such compiler && exit 3\n");
      const failure = page.locator(".failures li").filter({ hasText: "build failed" });
      await failure.getByText(/at step 2\/2 RUN echo no such compiler/).waitFor({ timeout: DEPLOY_MS });
      await failure.getByRole("link", { name: "Output" }).click();
      await page.getByRole("log").getByText("no such compiler").first().waitFor();
    });

    test("the explorer says what a query of real samples cost", async (t) => {
      const page = await open(t, "metrics/explore?query=svc_instance_memory_mem_total");
      const cost = page.getByRole("list", { name: "What the query cost" });
      await cost.getByText("under 0.1 % of 200M").waitFor();
      const [series = 0, samples = 0] = (await cost.locator("strong").allTextContents()).map(Number);
      assert.ok(series > 0 && samples >= series, `${samples} samples of ${series} series`);
    });

    test("a preview of a branch is made, opened under its own URL and deleted", async (t) => {
      const page = await open(t, "apps/shop/previews");
      await page.getByLabel("Pushes of other branches").check();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "New preview" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Branch").fill("feature/two");
      await dialog.getByLabel("Image").fill("shop:2");
      await dialog.getByText("create a machine, group app").waitFor();
      await dialog.getByRole("button", { name: "Deploy", exact: true }).click();
      await dialog.getByText(/^Done: release v1 runs\.$/).waitFor({ timeout: DEPLOY_MS });
      await dialog.getByRole("button", { name: "Close" }).click();
      const row = page.getByRole("row", { name: /feature\/two ready/ });
      await served(page, "two", row.getByRole("link", { name: /localhost/ }));
      await row.getByRole("button", { name: "Delete" }).click();
      await dialog.getByRole("button", { name: "Delete it" }).click();
      await page.getByText("No previews.").waitFor({ timeout: DEPLOY_MS });
      const { apps } = (await platform.ask("GET /v1/apps?org_slug=personal")).body;
      assert.deepEqual(
        apps.map(({ name }: { name: string }) => name),
        ["shop"],
      );
    });
  });
}
