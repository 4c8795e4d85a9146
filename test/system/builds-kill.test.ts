/** The platform is killed while it builds an image: nothing of the build is left, and the build says what happened. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { digestOf, tarOf } from "./build-context.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { command } from "./foreign-machines.ts";
import { nodeIdOf } from "./leaks.ts";

const SLEEP = "sleep 123456";
const DOCKERFILE = Buffer.from(`FROM base:1\nRUN echo begun; ${SLEEP}\n`);
const sha256 = digestOf(DOCKERFILE);

async function send({ base_url, token }: Daemon, path: string, bytes: Buffer): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/x-tar" };
  const answer = await fetch(`${base_url}${path}`, { method: "POST", headers, body: new Uint8Array(bytes) });
  assert.ok(answer.ok, await answer.text());
}

suite("a platform killed during a build", { skip: buildahMissing() ?? realMachinesMissing() }, () => {
  test("leaves nothing running or mounted after its next start, and the build is failed with the reason", async (t) => {
    const [dir, data_dir] = [tempDir(), tempDir()];
    t.after(async () => {
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
      for (const one of [dir, data_dir]) rmSync(one, { recursive: true, force: true });
    });
    mkdirSync(join(dir, "root"));
    busyboxLayer(join(dir, "root"));
    command("tar", "-C", join(dir, "root"), "-cf", join(dir, "root.tar"), ".");
    const first = await startDaemon(t, data_dir, ["--driver", "runc"]);
    await first.call("POST", "/v1/apps", { app_name: "web" });
    await send(first, "/v1/images/import?name=base:1", readFileSync(join(dir, "root.tar")));
    await send(first, "/v1/apps/web/builds/files", tarOf([DOCKERFILE]));
    const { body } = await first.call("POST", "/v1/apps/web/builds", { files: [{ path: "Dockerfile", sha256 }] });
    const path = `/v1/apps/web/builds/${String(body["id"])}`;
    await until("a step of the build runs", async () => {
      const { body: found } = await first.call("GET", `${path}/logs`);
      return String(found["log"]).includes("\nbegun") || undefined;
    });
    await first.child.kill();
    const second = await startDaemon(t, data_dir, ["--driver", "runc"]);
    const { body: build } = await second.call("GET", path);
    assert.equal(build["state"], "failed");
    assert.match(String(build["error"]), /the platform was restarted while the image was being built/);
    await until("no process of it runs", async () => spawnSync("pgrep", ["-f", SLEEP]).status !== 0 || undefined);
    await until("nothing of it is mounted", async () => {
      const mounts = readFileSync("/proc/self/mountinfo", "utf8");
      return (!mounts.includes(String(build["id"])) && !mounts.includes(join(data_dir, "builds"))) || undefined;
    });
    assert.deepEqual(readdirSync(join(data_dir, "builds", "run")), []);
  });
});
