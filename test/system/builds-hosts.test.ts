/**
 * Image builds with two control processes and hosts of their own: whichever process is asked, builds run on a host, and
 * are followed and cancelled through the other process; when their host is lost, they have failed.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { takeDownInstallation } from "#drivers/down.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { digestOf, tarOf } from "./build-context.ts";
import { type Child, startProgram } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { command } from "./foreign-machines.ts";
import { nodeIdOf } from "./leaks.ts";

const LEASE_S = 3;
const BUILDS = "/v1/apps/web/builds";
const MACHINES = "/v1/apps/web/machines";
const sleeping = (seconds: number): string => `FROM base:1\nRUN echo begun; sleep ${seconds}\n`;
const isRunning = (seconds: number): boolean => spawnSync("pgrep", ["-f", `sleep ${seconds}`]).status === 0;

async function startScene(t: TestContext): Promise<{ controls: [Daemon, Daemon]; host: Child }> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-builds-hosts-"));
  const made = new AsyncDisposableStack();
  t.after(() => made.disposeAsync());
  made.defer(() => rmSync(dir, { recursive: true, force: true }));
  const postgres = await startPostgres();
  made.defer(() => postgres.stop());
  const database = ["--database", await postgres.database(), "--host-lease", String(LEASE_S)];
  const last = { after: (work: () => unknown) => made.defer(async () => void (await work())) } as typeof t;
  const shared = ["--driver", "runc", ...database];
  const first = await startDaemon(last, join(dir, "control-1"), ["--role", "control", ...shared]);
  const token = async (): Promise<string[]> => {
    const { body } = await first.call("POST", "/v1/platform/host_join_tokens");
    return ["--join-token", String(body["token"])];
  };
  const second = await startDaemon(last, join(dir, "control-2"), ["--role", "control", ...shared, ...(await token())]);
  const refused = await first.call("POST", "/v1/apps", { app_name: "web" });
  assert.equal(refused.status, 201, JSON.stringify(refused.body));

  const data_dir = join(dir, "host");
  made.defer(async () => {
    const of = { data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog };
    const { objects, problems } = await takeDownInstallation(of);
    assert.deepEqual(
      [objects, problems],
      [[], []],
      "nothing of it is left, also of the build that its host was lost in",
    );
  });
  const flags = ["--role", "host", "--data-dir", data_dir, ...shared, ...(await token())];
  const host = startProgram({ after: () => {} }, "src/main.ts", flags);
  made.defer(async () => void (await host.kill()));
  await host.until(/ is ready /);

  const root = join(dir, "root");
  mkdirSync(root);
  busyboxLayer(root);
  command("tar", "-C", root, "-cf", join(dir, "root.tar"), ".");
  await send(second, "/v1/images/import?name=base:1", readFileSync(join(dir, "root.tar")));
  return { controls: [first, second], host };
}

async function send({ base_url, token }: Daemon, path: string, bytes: Buffer): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/x-tar" };
  const answer = await fetch(`${base_url}${path}`, { method: "POST", headers, body: new Uint8Array(bytes) });
  assert.ok(answer.ok, await answer.text());
}

/** Each request at the process after the one before, as behind a load balancer. */
async function begin([one, other]: readonly [Daemon, Daemon], text: string): Promise<string> {
  const dockerfile = Buffer.from(text);
  const sha256 = digestOf(dockerfile);
  const missing = await one.call("POST", `${BUILDS}/files/missing`, { files: [sha256] });
  assert.deepEqual(missing.body, { missing: [sha256] });
  await send(other, `${BUILDS}/files`, tarOf([dockerfile]));
  const { status, body } = await one.call("POST", BUILDS, { files: [{ path: "Dockerfile", sha256 }] });
  assert.equal(status, 201, JSON.stringify(body));
  return String(body["id"]);
}

/** What a process streams of a build's output; resolves when the stream ends. */
async function followed({ base_url, token }: Daemon, id: string): Promise<string> {
  const answer = await fetch(`${base_url}${BUILDS}/${id}/logs?follow=true`, {
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
  });
  return await answer.text();
}

const begun = async (control: Daemon, id: string): Promise<void> => {
  await until("a step of the build runs", async () => {
    const { body } = await control.call("GET", `${BUILDS}/${id}/logs`);
    const { body: build } = await control.call("GET", `${BUILDS}/${id}`);
    assert.notEqual(build["state"], "failed", JSON.stringify([build, body]));
    return String(body["log"]).includes("\nbegun") || undefined;
  });
};

suite("image builds on separate hosts", {
  skip: buildahMissing() ?? realMachinesMissing() ?? postgresMissing(),
}, () => {
  test("requests to any control process build on a host, and follow, cancel and lose its builds", async (t) => {
    const { controls, host } = await startScene(t);
    const [one, other] = controls;

    const id = await begin([one, other], "FROM base:1\nRUN echo built > /built\n");
    assert.match(await followed(other, id), /event: end\ndata: .*"state":"complete"/);
    const { body: build } = await one.call("GET", `${BUILDS}/${id}`);
    const image = `builds/web:latest@${String(build["digest"])}`;
    const config = { image, init: { exec: ["sleep", "1000"] }, guest: { cpus: 1, memory_mb: 256 } };
    const { body: machine } = await other.call("POST", MACHINES, { config });
    const path = `${MACHINES}/${String(machine["id"])}`;
    assert.equal((await one.call("GET", `${path}/wait?state=started&timeout=60`)).status, 200);
    const { body: ran } = await one.call("POST", `${path}/exec`, { command: ["cat", "/built"] });
    assert.equal(ran["stdout"], "built\n");
    assert.ok((await one.call("DELETE", `${path}?force=true`)).status < 300);

    const running = await begin([other, one], sleeping(234_567));
    const waiting = await begin([one, other], sleeping(234_568));
    await begun(one, running);
    const following = followed(one, running);
    const { body: listed } = await other.call("GET", BUILDS);
    const states = (listed["builds"] as { id: string; state: string }[]).map((shown) => [shown.id, shown.state]);
    assert.deepEqual(states, [
      [waiting, "queued"],
      [running, "running"],
      [id, "complete"],
    ]);
    for (const [control, cancelled] of [
      [other, waiting],
      [one, running],
    ] as const) {
      const { status, body } = await control.call("POST", `${BUILDS}/${cancelled}/cancel`);
      assert.deepEqual([status, body["state"]], [200, "cancelled"], JSON.stringify(body));
      assert.equal((await control.call("POST", `${BUILDS}/${cancelled}/cancel`)).body["state"], "cancelled");
    }
    assert.match(await following, /event: end\ndata: .*"state":"cancelled"/);
    await until("no step of them runs", () => !isRunning(234_567) && !isRunning(234_568));

    const lost = await begin([other, one], sleeping(234_569));
    await begun(other, lost);
    await host.kill();
    const failed = await until("the build of the lost host has failed", async () => {
      const { body } = await one.call("GET", `${BUILDS}/${lost}`);
      return body["state"] === "running" ? undefined : body;
    });
    assert.deepEqual(
      [failed["state"], failed["error"]],
      ["failed", "the host that built the image was lost; start the build again"],
    );
    const dockerfile = [{ path: "Dockerfile", sha256: digestOf(Buffer.from("FROM base:1\n")) }];
    const { status, body } = await one.call("POST", BUILDS, { files: dockerfile });
    assert.deepEqual([status, body["status"]], [400, "build_refused"]);
    assert.match(String(body["error"]), /no host of it can/);
  });
});
