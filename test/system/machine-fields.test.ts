/** Fields of a config that only a real machine can show: the resolver's options, its name, its root disk. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { tempDir } from "../support.ts";
import { nodeIdOf } from "./leaks.ts";

const PACKAGES = ["dash", "coreutils", "libc-bin"];
const MACHINES = "/v1/apps/web/machines";

suite("config fields of real machines", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  let platform: TestPlatform;

  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const dir = tempDir();
    mkdirSync(join(dir, "root"));
    packageRoot(join(dir, "root"), PACKAGES);
    const archive = join(dir, "root.tar");
    assert.equal(spawnSync("tar", ["-C", join(dir, "root"), "-cf", archive, "."]).status, 0);
    const made = await fetch(`${platform.base_url}/v1/images/import?name=debian:small`, {
      method: "POST",
      headers: { authorization: `Bearer ${platform.token}`, "content-type": "application/x-tar" },
      body: readFileSync(archive),
    });
    assert.equal(made.status, 201, await made.text());
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  const configOf = (more: object): object => ({
    image: "debian:small",
    init: { exec: ["sleep", "1000"] },
    stop_config: { signal: "SIGKILL" },
    ...more,
  });

  async function machine(t: { after(end: () => unknown): void }, config: object): Promise<string> {
    const { status, body, text } = await platform.ask(`POST ${MACHINES}`, { body: { config: configOf(config) } });
    assert.equal(status, 200, text);
    t.after(() => platform.ask(`DELETE ${MACHINES}/${body.id}?force=true`));
    assert.equal((await platform.ask(`GET ${MACHINES}/${body.id}/wait?state=started`)).status, 200);
    return body.id as string;
  }

  async function run(id: string, line: string): Promise<string> {
    const { body, text } = await platform.ask(`POST ${MACHINES}/${id}/exec`, { body: { command: ["sh", "-c", line] } });
    assert.equal(body.exit_code, 0, text);
    return body.stdout as string;
  }

  test("resolver options and host names appear inside the machine", async (t) => {
    const dns = {
      nameservers: ["fdaa::3"],
      searches: ["web.internal"],
      options: ["rotate", { name: "ndots", value: "2" }, { name: "edns0" }],
      hostname: "one",
      hostname_fqdn: "one.example",
    };
    const id = await machine(t, { dns });
    assert.equal(
      await run(id, "cat /etc/resolv.conf"),
      "search web.internal\nnameserver fdaa::3\noptions rotate ndots:2 edns0\n",
    );
    assert.equal(await run(id, "uname -n"), "one\n");
    assert.match(await run(id, "getent hosts one.example"), /^fdaa:\S+ +one.example one /);
  });

  test("rootfs.size_gb is the size of the root disk; rootfs.persist works as persist_rootfs", async (t) => {
    const id = await machine(t, { rootfs: { size_gb: 2, persist: "restart" } });
    const size_mb = Number(await run(id, "df --output=size -BM / | tail -n 1 | tr -d M"));
    assert.ok(size_mb > 1900 && size_mb <= 2048, `${size_mb} MB`);
    await run(id, "echo kept > /kept");
    assert.equal((await platform.ask(`POST ${MACHINES}/${id}/restart`)).status, 200);
    assert.equal((await platform.ask(`GET ${MACHINES}/${id}/wait?state=settled`)).body.state, "started");
    assert.equal(await run(id, "cat /kept"), "kept\n");
    const usual = await machine(t, {});
    assert.ok(Number(await run(usual, "df --output=size -BM / | tail -n 1 | tr -d M")) > 7000);
  });
});
