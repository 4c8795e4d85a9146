/** `hangar import fly`: apps are read from a listener that speaks as Fly's API does, and applied to another platform. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { flyPlatform } from "../fly-listener.ts";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { NPX } from "./child.ts";

const config = {
  image: "registry.fly.io/web:1",
  env: { A: "b", EMPTY: "" },
  guest: { cpu_kind: "shared", cpus: 2, memory_mb: 512 },
  init: { cmd: ["serve"] },
  metadata: { fly_process_group: "web" },
  restart: { policy: "on-failure", max_retries: 3 },
  checks: { alive: { type: "http", port: 8080, path: "/", interval: "10s", timeout: "2s" } },
  services: [{ protocol: "tcp", internal_port: 8080, autostart: true, ports: [{ port: 80, handlers: ["http"] }] }],
  statics: [{ guest_path: "/site", url_prefix: "/" }],
  stop_config: { signal: "SIGINT", timeout: "5s" },
};

suite("hangar import fly", () => {
  test("an app read there and applied here leaves nothing to differ, and what is not carried over is said", async (t) => {
    const { flies, fly, token } = await flyPlatform(t);
    const made = async (target: string, body: unknown) => {
      const answer = await flies(target, { body });
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      return answer.body;
    };
    await made("POST /v1/apps", { app_name: "web" });
    await made("POST /v1/apps", { app_name: "other" });
    const volumes = [];
    for (const size_gb of [1, 2])
      volumes.push(await made("POST /v1/apps/web/volumes", { name: "data", size_gb, require_unique_zone: false }));
    const mounts = [{ volume: volumes[1].id, path: "/data" }];
    const one = await made("POST /v1/apps/web/machines", { name: "Web-One", config: { ...config, mounts } });
    await made("POST /v1/apps/web/machines", { name: "two", skip_launch: true, config: { ...config, standbys: [] } });
    await made("POST /v1/apps/web/machines", {
      name: "spare",
      config: { image: "web:2", standbys: [one.id] },
    });
    await made("POST /v1/apps/web/secrets/KEY", { value: "canary-1" });
    await made("POST /v1/apps/web/ip_assignments", { type: "shared_v4" });
    const here = await testPlatform(t);
    const cwd = tempDir();
    const run = (line: string, env: Record<string, string> = {}) =>
      shell(`${NPX}\n${line}`, { cwd, HOME: cwd, HANGAR_DATA_DIR: here.data_dir, FLY_API_TOKEN: token, ...env });

    const read = await run(`hangar import fly web --from ${fly} -o web.json`);
    assert.equal(read.status, 0, read.stderr);
    for (const said of [
      /2 volumes will be empty/,
      /value of secret KEY/,
      /config\.standbys is left out/,
      /Fly's registry/,
    ])
      assert.match(read.stderr, said);
    const text = readFileSync(join(cwd, "web.json"), "utf8");
    assert.doesNotMatch(text, /canary-1/);

    const applied = await run("hangar apply web.json --yes");
    assert.match(applied.stderr, /problem: web: secret KEY is not set/);
    assert.equal((await run("hangar secrets set --app web KEY=new")).status, 0);
    const { status, stdout, stderr } = await run("hangar apply web.json --dry-run");
    assert.deepEqual([status, stdout.trim()], [0, "nothing differs"], stderr);

    const machines = (await here.ask("GET /v1/apps/web/machines")).body as {
      name: string;
      state: string;
      config: { mounts?: { volume: string }[] };
    }[];
    const states = Object.fromEntries(machines.map(({ name, state }) => [name, state]));
    assert.deepEqual([states["web-one"], states["two"]], ["started", "created"]);
    const mounted = machines.find(({ name }) => name === "web-one")?.config.mounts?.[0]?.volume;
    const kept = (await here.ask("GET /v1/apps/web/volumes")).body as { id: string; size_gb: number }[];
    assert.equal(kept.find(({ id }) => id === mounted)?.size_gb, 2, "the second volume of this name is mounted");

    const all = await run(`hangar import fly --json`, { FLY_FLAPS_BASE_URL: fly });
    const { apps } = JSON.parse(all.stdout) as { apps: { name: string }[] };
    assert.deepEqual(apps.map(({ name }) => name).sort(), ["other", "web"]);
  });

  test("refuses with clear errors: no token, a wrong one, no such app, an address that is none", async (t) => {
    const { fly, token, data_dir } = await flyPlatform(t);
    const run = (line: string, FLY_API_TOKEN: string) =>
      shell(`${NPX}\nhangar import fly ${line}`, { cwd: tempDir(), HANGAR_DATA_DIR: data_dir, FLY_API_TOKEN });
    const cases: [line: string, token: string, words: RegExp][] = [
      [`--from ${fly}`, "", /set FLY_API_TOKEN/],
      [`--from ${fly}`, "fm2_wrong", /may not read this \(HTTP 401\)/],
      [`nowhere --from ${fly}`, token, /there is no app nowhere/],
      ["--from ftp://x", token, /ftp:\/\/x is not an address such as https:\/\/api\.machines\.dev/],
      ["--from http://127.0.0.1:1", token, /no answer from/],
    ];
    for (const [line, given, words] of cases) {
      const { status, stderr } = await run(line, given);
      assert.equal(status, 2, stderr);
      assert.match(stderr, words);
    }
  });
});
