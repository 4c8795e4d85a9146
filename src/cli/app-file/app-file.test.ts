import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { groupsOf } from "./groups.ts";
import { parseAppFile } from "./read.ts";
import { splitWords } from "./units.ts";

const groups = (text: string, image = "web:1") => groupsOf(parseAppFile(text, "hangar.toml"), image);

suite("an app's configuration file", () => {
  test("a minimal file becomes one machine on ports 80 and 443", () => {
    const [group, ...none] = groups(`
      app = "web"
      kill_signal = "SIGTERM"
      kill_timeout = 5
      [env]
      PORT = 8080
      [http_service]
      internal_port = 8080
      force_https = true
      auto_stop_machines = "suspend"
      auto_start_machines = true
      min_machines_running = 0
      [[http_service.checks]]
      grace_period = "10s"
      interval = 15000
      path = "/up"
      headers = { Host = "example.com" }
      [[vm]]
      memory = "1gb"
      cpus = 2
    `);
    assert.deepEqual(none, []);
    const check = { type: "http", grace_period: "10s", interval: "15000ms", path: "/up" };
    assert.deepEqual(group, {
      name: "app",
      config: {
        image: "web:1",
        metadata: { fly_process_group: "app" },
        env: { PORT: "8080" },
        guest: { cpus: 2, memory_mb: 1024 },
        services: [
          {
            protocol: "tcp",
            internal_port: 8080,
            ports: [
              { port: 80, handlers: ["http"], force_https: true },
              { port: 443, handlers: ["tls", "http"] },
            ],
            autostop: "suspend",
            autostart: true,
            min_machines_running: 0,
            checks: [{ ...check, headers: [{ name: "Host", values: ["example.com"] }] }],
          },
        ],
        stop_config: { signal: "SIGTERM", timeout: "5s" },
      },
    });
  });

  test("process groups get their own command and sections; unnamed services belong to the first group", () => {
    const [web, worker] = groups(`
      app = "shop"
      [processes]
      web = "node server.js --name 'a b'"
      worker = "node worker.js"
      [[services]]
      internal_port = 5432
      protocol = "tcp"
      [[services.ports]]
      port = 5432
      [[services.tcp_checks]]
      interval = "5s"
      [[metrics]]
      port = 9091
      path = "/m"
      processes = ["worker"]
      [[vm]]
      size = "shared-cpu-2x"
      processes = ["worker"]
      [[mounts]]
      source = "data"
      destination = "/data"
      initial_size = "10gb"
      auto_extend_size_threshold = 80
      auto_extend_size_increment = "1GB"
      auto_extend_size_limit = "20GB"
      processes = ["worker"]
      [checks.alive]
      type = "tcp"
      port = 7
      processes = ["web"]
      [[restart]]
      policy = "never"
      processes = ["worker"]
    `);
    assert.deepEqual(web?.config.init?.cmd, ["node", "server.js", "--name", "a b"]);
    assert.deepEqual(web?.config.services?.[0]?.checks, [{ type: "tcp", interval: "5s" }]);
    assert.deepEqual(web?.config.checks, { alive: { type: "tcp", port: 7 } });
    assert.equal(web?.config.metrics, undefined);
    assert.equal(worker?.config.services, undefined);
    assert.deepEqual(worker?.config.metrics, { port: 9091, path: "/m" });
    assert.equal(worker?.config.size, "shared-cpu-2x");
    assert.deepEqual(worker?.config.restart, { policy: "no" });
    const grow = { extend_threshold_percent: 80, add_size_gb: 1, size_gb_limit: 20 };
    assert.deepEqual(worker?.mount, { volume_name: "data", size_gb: 10, rest: { path: "/data", ...grow } });
  });

  test("a section that names the group wins over a general one; two of a kind are refused", () => {
    const processes = '[processes]\nweb = "a"\nworker = "b"\n';
    const [web, worker] = groups(`
      ${processes}
      [[metrics]]
      port = 9090
      [[metrics]]
      port = 9091
      processes = ["worker"]
    `);
    assert.deepEqual([web?.config.metrics?.port, worker?.config.metrics?.port], [9090, 9091]);
    for (const section of ["metrics", "vm", "restart", "mounts"]) {
      const twice = `${processes}${`[[${section}]]\nprocesses = ["web"]\n`.repeat(2)}`;
      assert.throws(() => groups(twice), new RegExp(`${section} is defined more than once for process group web`));
    }
  });

  test("all errors of the file are reported at once; unknown keys are warnings with a suggestion", () => {
    assert.throws(() => parseAppFile(`app = 5\n[env]\nA = [1]\n[[mounts]]\nsource = 1\n`, "fly.toml"), {
      name: "UsageError",
      message:
        "fly.toml cannot be used:\n  app must be text\n  env must be a table of texts\n  mounts[0].source must be text",
    });
    assert.deepEqual(parseAppFile("primary_regoin = 'ams'", "x").warnings, [
      "primary_regoin is not known here and is left out; did you mean primary_region?",
    ]);
    assert.deepEqual(parseAppFile("processes = []\nmounts = []", "fly.toml").values, {});
    assert.throws(() => parseAppFile("app = ", "x.toml"), /x\.toml: .*line 1|x\.toml: Invalid/s);
    assert.throws(() => groups(`[[vm]]\nprocesses = ["worker"]`), /vm names the process group worker; there is app/);
    assert.throws(() => groups(`[[restart]]\npolicy = "maybe"`), /restart.policy is maybe; it may be never, no/);
    assert.throws(() => groups(`[mounts]\nsource = "data"`), /mounts needs source, a volume's name, and destination/);
  });

  test("command lines are split as a shell does", () => {
    assert.deepEqual(splitWords(`a  "b \\"c\\"" 'd e'f g\\ h ''`), ["a", 'b "c"', "d ef", "g h", ""]);
    assert.deepEqual(splitWords("  "), []);
  });

  test("[sqlite] is for the groups that have its directory on a volume", () => {
    const file = (dir: string) => `
      [processes]
      web = "web"
      worker = "work"
      [[mounts]]
      source = "data"
      destination = "/data"
      processes = ["web"]
      [sqlite]
      dir = "${dir}"
      ack = "one"
    `;
    const attached = groups(file("/data/db")).map(({ config }) => config.sqlite);
    assert.deepEqual(attached, [{ dir: "/data/db", ack: "one" }, undefined]);
    assert.throws(() => groups(file("/srv")), /\[sqlite\] dir = "\/srv" is on no volume: write \[\[mounts\]\]/);
    assert.throws(() => groups(file("data")), /\[sqlite\]: dir is no absolute path/);
    assert.throws(() => groups(`[sqlite]\nack = "one"`), /\[sqlite\]: dir is missing/);
  });
});
