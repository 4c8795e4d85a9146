/**
 * Images that no registry has, on a host that is a process and a box of its own: the built-in one, though that host's Node
 * is another build than the control's, and a Debian root that was imported at the control.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { Child, ROOT } from "./child.ts";
import { startDaemon } from "./daemon.ts";
import { until } from "./hosts-support.ts";
import { nodeIdOf } from "./leaks.ts";

const PACKAGES = ["dash", "coreutils"];
const MACHINES = "/v1/apps/web/machines";

suite("images on separate hosts", {
  skip: realMachinesMissing() ?? postgresMissing() ?? packagesMissing(PACKAGES),
}, () => {
  test("the built-in and an imported image start without a registry, on a host with another Node", async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "hangar-hosts-images-"));
    const made = new AsyncDisposableStack();
    t.after(() => made.disposeAsync());
    made.defer(() => rmSync(dir, { recursive: true, force: true }));
    const postgres = await startPostgres();
    made.defer(() => postgres.stop());
    const shared = ["--driver", "runc", "--database", await postgres.database()];
    const control_dir = join(dir, "control");
    const last = { after: (work: () => Promise<void>) => made.defer(work) };
    const control = await startDaemon(last as typeof t, control_dir, [...shared, "--role", "control"]);
    const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
      const answer = await control.call(method, path, body);
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    // A file with something behind its end is the same program, and another file: so is another build.
    const node = join(dir, "node");
    copyFileSync(process.execPath, node);
    appendFileSync(node, "another build");
    const host_dir = join(dir, "host");
    const join_token = String((await ask("POST", "/v1/platform/host_join_tokens"))["token"]);
    const args = ["--role", "host", "--data-dir", host_dir, "--join-token", join_token];
    const host = new Child(node, [join(ROOT, "src/main.ts"), ...shared, ...args], { env: process.env });
    made.defer(() =>
      takeDown({ data_dir: host_dir, node_id: nodeIdOf(host_dir), clock: systemClock, log: silentLog }).then(() => {}),
    );
    made.defer(async () => void (await host.kill()));
    await host.until(/ is ready /);

    await ask("POST", "/v1/apps", { app_name: "web" });
    const start = async (config: object): Promise<Record<string, unknown>> => {
      const { id } = await ask("POST", MACHINES, { config });
      await until("it runs", async () => {
        const { state, events } = await ask("GET", `${MACHINES}/${String(id)}`);
        assert.notEqual(state, "failed", JSON.stringify(events));
        return state === "started";
      });
      return await ask("GET", `${MACHINES}/${String(id)}`);
    };
    const resolved = await ask("GET", "/v1/apps/web/images/resolve?image=hangar/hello");
    const hello = await start({ image: "hangar/hello" });
    const { digest } = hello["image_ref"] as { digest: string };
    assert.notEqual(`hangar/hello@${digest}`, resolved["reference"], "it is what the host made, and says so");
    const told = await ask("POST", `${MACHINES}/${String(hello["id"])}/exec`, {
      command: ["/usr/bin/node", "-e", "fetch('http://127.0.0.1:8080/').then(async (r) => console.log(r.status))"],
    });
    assert.equal(told["stdout"], "200\n");

    const root = packageRoot(join(dir, "root"), PACKAGES);
    const token = readFileSync(join(control_dir, "token"), "utf8").trim();
    const env = { ...process.env, HANGAR_URL: control.base_url, HANGAR_TOKEN: token };
    const cli = [join(ROOT, "src/cli/main.ts"), "images", "import", "deb:1", root];
    await promisify(execFile)(process.execPath, cli, { env });
    const deb = await start({ image: "deb:1", init: { exec: ["sleep", "1000"] } });
    const ran = await ask("POST", `${MACHINES}/${String(deb["id"])}/exec`, {
      command: ["sh", "-c", "echo in $0", "Debian"],
    });
    assert.equal(ran["stdout"], "in Debian\n");
    for (const { id } of [hello, deb]) await ask("DELETE", `${MACHINES}/${String(id)}?force=true`);
  });
});
