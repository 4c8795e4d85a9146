/** A host that stands still is shown as that, everywhere, and not as what it was. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { hangar, insist, startCluster, until } from "./hosts-support.ts";
import { ownNetwork } from "./own-network.ts";

const MACHINES = "/v1/apps/web/machines";
const CONFIG = { image: "web:1", guest: { cpus: 1, memory_mb: 256 } };
/** Long enough to look at it between three and five quarters of it. */
const LEASE_S = 16;

if (await ownNetwork(import.meta.filename)) {
  suite("a host that stands still", { skip: postgresMissing() ?? noBrowser }, () => {
    test("is unknown in API, CLI and dashboard, its machines too, and cannot be removed before its lease ends", async (t) => {
      const { controls, hosts } = await startCluster(t, { controls: 1, hosts: 1, lease_s: LEASE_S });
      const [control] = controls;
      const [host] = hosts;
      assert.ok(control && host);
      await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
      const id = String((await insist(control, "POST", MACHINES, { config: CONFIG }))["id"]);
      await insist(control, "GET", `${MACHINES}/${id}/wait?state=started&timeout=60`);
      const read = async (): Promise<Record<string, unknown>> =>
        (await control.call("GET", `/v1/platform/hosts/${host.id}`)).body;
      assert.ok(Date.parse(String((await read())["lease_ends_at"])) > Date.now());
      const { page } = await visit(t, await openBrowser(t), control);
      await page.evaluate('location.hash = "#/machines"');
      await page.locator(".badge", { hasText: "started" }).waitFor();

      host.child.signal("SIGSTOP");
      await until("it is unknown", async () => (await read())["state"] === "unknown");
      const remove = () => hangar(t, control, "hosts", "remove", host.id);
      const removal = await remove();
      assert.equal(removal.code, 5, "a conflict");
      assert.match(removal.said, /cannot be removed yet: its lease runs until \d{4}-\d\d-\d\dT[\d:.]+Z/);
      assert.match((await hangar(t, control, "hosts", "list")).said, new RegExp(`${host.id}.*unknown \\(frozen\\)`));
      assert.match((await hangar(t, control, "machines", "list", "-a", "web")).said, /unknown \(was started\)/);
      await page.locator(".badge", { hasText: "unknown" }).waitFor();
      assert.equal(await page.locator(".badge", { hasText: "started" }).count(), 0);

      await until("it is lost", async () => (await read())["state"] === "failed");
      await page.locator(".badge", { hasText: "unreachable" }).waitFor();
      await page.evaluate('location.hash = "#/hosts"');
      await page.getByText("its lease has ended").waitFor();
      assert.equal((await read())["lease_ends_at"], "");
      assert.match((await remove()).said, /still has machines or volumes/);
      host.child.signal("SIGCONT");
      await until("it is back", async () => (await read())["state"] === "ok");
      await page.locator(".badge", { hasText: "ok" }).waitFor();
      await page.evaluate('location.hash = "#/machines"');
      await page.locator(".badge", { hasText: "started" }).waitFor();
    });
  });
}
