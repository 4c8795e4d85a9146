/** `fly deploy --local-only` with a Dockerfile: Docker's API builds and pushes to the platform's registry; here it is podman's. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { flyPlatform } from "../fly-listener.ts";
import { flyctl, flyctlEnv } from "../flyctl.ts";
import { folderOf, shell, tempDir, until } from "../support.ts";

const TOML = `app = "web"
primary_region = "local"
[[vm]]
  size = "shared-cpu-1x"
`;

/** The socket of an engine that may push to this address without TLS. */
async function dockerApi(t: TestContext, registry: string): Promise<string> {
  const dir = tempDir();
  const [socket, registries] = [join(dir, "docker.sock"), join(dir, "registries.conf")];
  writeFileSync(registries, `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`);
  const storage = ["--root", join(dir, "root"), "--runroot", join(dir, "run"), "--storage-driver", "vfs"];
  const args = [...storage, "--cgroup-manager", "cgroupfs", "system", "service", "--time", "0", `unix://${socket}`];
  const env = { ...process.env, CONTAINERS_REGISTRIES_CONF: registries };
  const engine = spawn("podman", args, { env, stdio: "ignore" });
  t.after(async () => {
    const ended = once(engine, "exit");
    engine.kill();
    await ended;
  });
  await until("the engine listens", () => existsSync(socket));
  return socket;
}

suite("flyctl with a Docker engine", () => {
  test("fly deploy --local-only builds a Dockerfile, pushes it to the platform and deploys it", async (t) => {
    if (spawnSync("podman", ["--version"]).error) return t.skip("podman is not installed (apt-get install podman)");
    const program = flyctl(t);
    if (program === undefined) return;
    const platform = await flyPlatform(t);
    const registry = new URL(platform.base_url).host;
    const cwd = folderOf({
      "fly.toml": TOML,
      Dockerfile: 'FROM scratch\nCOPY hello /\nCMD ["/hello"]\n',
      hello: "hello",
    });
    const engine = { DOCKER_HOST: `unix://${await dockerApi(t, registry)}`, DOCKER_BUILDKIT: "0" };
    const env = { ...flyctlEnv(platform), ...engine, cwd, FLY_REGISTRY_HOST: `${registry}/personal` };
    await platform.flies("POST /v1/apps", { body: { app_name: "web" } });
    const deploy = "deploy --local-only --ha=false --dns-checks=false";
    const { status, stdout, stderr } = await shell(`${program} ${deploy} < /dev/null`, env);
    assert.equal(status, 0, `${stdout}${stderr}`);
    const [, tag = ""] = /image: \S+\/personal\/web:(deployment-\w+)/.exec(stderr) ?? assert.fail(stderr);
    const [machine] = (await platform.flies("GET /v1/apps/web/machines")).body;
    const { repository, digest } = machine.image_ref;
    assert.deepEqual([machine.state, repository], ["started", "personal/web"]);
    const pushed = await platform.ask(`GET /v2/personal/web/manifests/${tag}`);
    assert.equal(pushed.status, 200, pushed.text);
    assert.match(digest, /^sha256:[0-9a-f]{64}$/);
  });
});
