import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { configDuration } from "#core/durations.ts";
import { problems } from "#http/validate.ts";
import { parseImage } from "../runtime/images.ts";
import { complete, configProblems, configWarnings, mergeConfig, SIZES, sizeOf } from "./config.ts";
import { Config, type MachineConfig } from "./config-schema.ts";

const all = (config: unknown): string[] =>
  [...problems(Config, config, "config"), ...configProblems(config, "config")].map(({ path }) => path);

/** Everything the specification names that some host has, each property at least once. */
const FULL = {
  image: `registry.example/team/web:1.2@sha256:${"a".repeat(64)}`,
  auto_destroy: true,
  checks: {
    alive: { type: "tcp", port: 8080, interval: 15_000_000_000, timeout: "10s", grace_period: "1m30s" },
    page: {
      type: "http",
      port: 8080,
      interval: "15s",
      method: "GET",
      path: "/health",
      protocol: "https",
      tls_server_name: "web.example",
      tls_skip_verify: true,
      headers: [{ name: "X", values: ["1", "2"] }],
    },
  },
  dns: {
    nameservers: ["fdaa::3"],
    searches: ["internal"],
    options: [{ name: "ndots" }],
    dns_forward_rules: [],
    skip_registration: true,
  },
  env: { A: "1", "with.dot": "2" },
  files: [
    { guest_path: "/a", raw_value: "aGk=" },
    { guest_path: "/b", secret_name: "FILE" },
  ],
  guest: {
    cpu_kind: "performance",
    cpus: 2,
    gpus: 1,
    memory_mb: 4096,
    kernel_args: ["quiet"],
    persist_rootfs: "restart",
  },
  init: { exec: ["/x"], entrypoint: ["/e"], cmd: ["c"], kernel_args: ["k"], tty: false, swap_size_mb: 512 },
  metadata: { role: "web" },
  metrics: { port: 9091, path: "/metrics" },
  mounts: [
    {
      volume: "vol_1",
      path: "/data",
      name: "data",
      extend_threshold_percent: 80,
      add_size_gb: 1,
      size_gb_limit: 10,
      encrypted: true,
    },
  ],
  processes: [
    {
      entrypoint: ["/p"],
      cmd: ["a"],
      env: { B: "2" },
      env_from: [{ env_var: "ID", field_ref: "id" }],
      exec: ["/q"],
      user: "me",
      ignore_app_secrets: false,
      secrets: [{ env_var: "TOKEN", name: "T" }],
    },
  ],
  restart: { policy: "on-failure", max_retries: 3 },
  schedule: "daily",
  services: [
    {
      protocol: "tcp",
      internal_port: 8080,
      concurrency: { type: "requests", soft_limit: 20, hard_limit: 25 },
      ports: [
        {
          port: 80,
          handlers: ["http"],
          force_https: true,
          http_options: { compress: true, h2_backend: false, response: { headers: { "x-a": "b" }, pristine: true } },
        },
        {
          port: 443,
          handlers: ["tls", "http"],
          tls_options: { alpn: ["h2"], default_self_signed: false, versions: ["TLSv1.3"] },
        },
        { start_port: 10_000, "end-port": 10_010, handlers: ["tcp"], proxy_proto_options: { version: "v2" } },
      ],
      autostart: true,
      autostop: "suspend",
      min_machines_running: 1,
    },
    { protocol: "udp", internal_port: 53, autostop: false },
  ],
  statics: { guest_path: "/public", url_prefix: "/static", tigris_bucket: "b", index_document: "index.html" },
  stop_config: { signal: "SIGTERM", timeout: 5_000_000_000 },
};

const port = (options: object): object => ({
  services: [{ protocol: "tcp", internal_port: 1, ports: [{ port: 1, handlers: ["tcp"], ...options }] }],
});

suite("machine config", () => {
  test("every property of the specification is accepted and returned unchanged", () => {
    assert.deepEqual(all(FULL), []);
    assert.deepEqual(complete(FULL as unknown as MachineConfig), FULL);
    assert.deepEqual(configWarnings(FULL as unknown as MachineConfig), [
      "config.guest.gpus has no effect here: no host has a GPU",
      "config.guest.kernel_args has no effect here: machines share the kernel of their host",
      "config.init.kernel_args has no effect here: machines share the kernel of their host",
    ]);
    assert.deepEqual(all({ image: "x", standbys: ["m1"], size: "shared-cpu-2x", statics: [FULL.statics] }), []);
  });

  const bad: [string, object, string][] = [
    ["no image", { image: undefined }, "config.image"],
    ["an empty image", { image: "" }, "config.image"],
    ["an image with blanks", { image: "a b" }, "config.image"],
    ["memory of 300 MB", { guest: { memory_mb: 300 } }, "config.guest.memory_mb"],
    ["no memory", { guest: { memory_mb: 0 } }, "config.guest.memory_mb"],
    ["an unknown cpu_kind", { guest: { cpu_kind: "fast" } }, "config.guest.cpu_kind"],
    ["a resolver option with a line break", { dns: { options: ["a\nb"] } }, "config.dns.options.0"],
    [
      "an odd field of the machine",
      { processes: [{ env_from: [{ env_var: "A", field_ref: "b" }] }] },
      "config.processes.0.env_from.0.field_ref",
    ],
    [
      "TLS of the future",
      port({ tls_options: { versions: ["TLSv9"] } }),
      "config.services.0.ports.0.tls_options.versions.0",
    ],
    [
      "PROXY of the future",
      port({ proxy_proto_options: { version: "v9" } }),
      "config.services.0.ports.0.proxy_proto_options.version",
    ],
    ["half a cpu", { guest: { cpus: 0.5 } }, "config.guest.cpus"],
    ["an unknown persist_rootfs", { guest: { persist_rootfs: "maybe" } }, "config.guest.persist_rootfs"],
    ["size and guest", { size: "shared-cpu-1x", guest: { cpus: 1 } }, "config.size"],
    ["an unknown size", { size: "shared-cpu-3x" }, "config.size"],
    ["a file with two contents", { files: [{ guest_path: "/a", raw_value: "", secret_name: "S" }] }, "config.files.0"],
    ["a file without contents", { files: [{ guest_path: "/a" }] }, "config.files.0"],
    ["a file at a relative path", { files: [{ guest_path: "a", raw_value: "" }] }, "config.files.0.guest_path"],
    ["a file that is not base64", { files: [{ guest_path: "/a", raw_value: "%%" }] }, "config.files.0.raw_value"],
    [
      "two mounts",
      {
        mounts: [
          { volume: "v", path: "/a" },
          { volume: "w", path: "/b" },
        ],
      },
      "config.mounts",
    ],
    [
      "a threshold without a step",
      { mounts: [{ volume: "v", path: "/a", extend_threshold_percent: 80 }] },
      "config.mounts.0.add_size_gb",
    ],
    [
      "a limit without a threshold",
      { mounts: [{ volume: "v", path: "/a", size_gb_limit: 8 }] },
      "config.mounts.0.extend_threshold_percent",
    ],
    ["a relative mount", { mounts: [{ volume: "v", path: "a" }] }, "config.mounts.0.path"],
    ["an unknown type of check", { checks: { a: { type: "udp" } } }, "config.checks.a.type"],
    ["a check without a port", { checks: { a: { type: "tcp" } } }, "config.checks.a.port"],
    ["a check on port 0", { checks: { a: { port: 0 } } }, "config.checks.a.port"],
    ["a duration without a unit", { checks: { a: { interval: "15" } } }, "config.checks.a.interval"],
    ["a negative duration", { checks: { a: { timeout: -1 } } }, "config.checks.a.timeout"],
    [
      "a secret with a bad variable",
      { processes: [{ secrets: [{ env_var: "1X" }] }] },
      "config.processes.0.secrets.0.env_var",
    ],
    [
      "a secret without a variable",
      { processes: [{ secrets: [{ name: "X" }] }] },
      "config.processes.0.secrets.0.env_var",
    ],
    ["restart without a policy", { restart: { max_retries: 1 } }, "config.restart.policy"],
    ["an unknown restart policy", { restart: { policy: "sometimes" } }, "config.restart.policy"],
    ["an unknown schedule", { schedule: "yearly" }, "config.schedule"],
    ["metrics without a path", { metrics: { port: 1 } }, "config.metrics.path"],
    ["a service without a protocol", { services: [{ internal_port: 1 }] }, "config.services.0.protocol"],
    ["a service without a port", { services: [{ protocol: "tcp" }] }, "config.services.0.internal_port"],
    [
      "an unknown handler",
      { services: [{ protocol: "tcp", internal_port: 1, ports: [{ port: 1, handlers: ["ftp"] }] }] },
      "config.services.0.ports.0.handlers.0",
    ],
    [
      "soft above hard",
      { services: [{ protocol: "tcp", internal_port: 1, concurrency: { soft_limit: 9, hard_limit: 5 } }] },
      "config.services.0.concurrency.soft_limit",
    ],
    [
      "half a port range",
      { services: [{ protocol: "tcp", internal_port: 1, ports: [{ start_port: 5 }] }] },
      "config.services.0.ports.0",
    ],
    [
      "a port range backwards",
      { services: [{ protocol: "tcp", internal_port: 1, ports: [{ start_port: 9, end_port: 5 }] }] },
      "config.services.0.ports.0.start_port",
    ],
    [
      "autostop at will",
      { services: [{ protocol: "tcp", internal_port: 1, autostop: "later" }] },
      "config.services.0.autostop",
    ],
    [
      "standing by with services",
      { standbys: ["m"], services: [{ protocol: "tcp", internal_port: 1 }] },
      "config.standbys",
    ],
    ["statics without a prefix", { statics: { guest_path: "/a" } }, "config.statics"],
    ["SIGSTOP as stop signal", { stop_config: { signal: "SIGSTOP" } }, "config.stop_config.signal"],
    ["an env value that is not a string", { env: { A: 1 } }, "config.env.A"],
    ["an env name with =", { env: { "A=B": "1" } }, "config.env.A=B"],
    ["a metadata value that is not a string", { metadata: { a: 1 } }, "config.metadata.a"],
  ];
  for (const [what, config, path] of bad) {
    test(`${what} is refused at ${path}`, () => {
      assert.ok(all({ image: "x", ...config }).includes(path), JSON.stringify(all({ image: "x", ...config })));
    });
  }

  test("all problems are reported at once, those of the schema and those of the rules", () => {
    const config = { guest: { memory_mb: 1, cpus: "2" }, size: "big", files: [{ guest_path: "/a" }], restart: {} };
    const found = all(config);
    for (const path of ["image", "guest.memory_mb", "guest.cpus", "size", "files.0", "restart.policy"]) {
      assert.ok(found.includes(`config.${path}`), path);
    }
  });

  test("unknown keys are kept, with a warning that suggests the nearest known key", () => {
    const config = {
      image: "x",
      gest: { cpus: 1 },
      guest: { cpu: 2 },
      services: [{ protocol: "tcp", internal_port: 1, auto_stop: true }],
    };
    assert.deepEqual(all(config), []);
    const completed = complete(config as unknown as MachineConfig) as unknown as typeof config;
    assert.deepEqual([completed.gest, completed.guest.cpu, completed.services], [config.gest, 2, config.services]);
    const warnings = configWarnings(config as unknown as MachineConfig);
    assert.deepEqual(
      warnings.map((line) => /^(\S+) .*?(?:did you mean (\S+)\?)?$/.exec(line)?.slice(1)),
      [
        ["config.gest", "guest"],
        ["config.guest.cpu", "cpus"],
        ["config.services.0.auto_stop", "autostop"],
      ],
    );
  });

  test("a tcp port without handlers gives a warning that it stays closed; a udp port needs none", () => {
    const ports = [{ port: 5432 }, { port: 443, handlers: ["tls" as const] }];
    const services = (["tcp", "udp"] as const).map((protocol) => ({ protocol, internal_port: 1, ports }));
    assert.deepEqual(configWarnings({ image: "x", services }), [
      'config.services.0.ports.0 has no handlers, so it stays closed to the internet; handlers: ["tcp"] passes bytes on',
    ]);
  });

  test("a merge accepts old invalid fields that the patch does not touch", () => {
    const old = { image: "x", guest: { gpu_kind: "a10" }, checks: { a: {} } } as unknown as MachineConfig;
    assert.equal(mergeConfig(old, { env: { A: "1" } }).env?.["A"], "1");
    assert.throws(() => mergeConfig(old, { checks: { b: {} } }), /body.config.checks.b.port is required/);
  });

  test("machine sizes: named ones, partial ones completed, and the default", () => {
    assert.deepEqual(sizeOf({}), { cpu_kind: "shared", cpus: 1, memory_mb: 256 });
    assert.deepEqual(sizeOf({ guest: { cpus: 4 } }), { cpu_kind: "shared", cpus: 4, memory_mb: 256 });
    assert.deepEqual(sizeOf({ size: "performance-2x" }), { cpu_kind: "performance", cpus: 2, memory_mb: 4096 });
    assert.equal(Object.keys(SIZES).length, 14);
    assert.deepEqual(complete({ image: "x", size: "shared-cpu-2x" }), { image: "x", size: "shared-cpu-2x" });
  });

  test("durations are nanoseconds or text with a unit", () => {
    const cases: [number | string | undefined, number | undefined][] = [
      [15_000_000_000, 15_000],
      ["15s", 15_000],
      ["1m30s", 90_000],
      ["250ms", 250],
      ["1.5h", 5_400_000],
      ["500us", 0.5],
      ["0", 0],
      [0, 0],
      ["15", undefined],
      ["s", undefined],
      [undefined, undefined],
      ["1s ", undefined],
    ];
    for (const [given, ms] of cases) assert.equal(configDuration(given), ms, String(given));
  });

  test("a merge patch adds, replaces and removes keys, and never reaches a prototype", () => {
    const before: MachineConfig = { image: "x", env: { A: "1", B: "2" } };
    assert.deepEqual(mergeConfig(before, { env: { A: null, C: "3" } }), { image: "x", env: { B: "2", C: "3" } });
    const odd = JSON.parse('{"__proto__": {"polluted": true}}') as unknown;
    mergeConfig(before, odd);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    assert.throws(() => mergeConfig(before, { image: null }), /body.config.image/);
  });

  test("image references are parsed as registries do", () => {
    const cases: [string, string][] = [
      ["nginx", "registry-1.docker.io library/nginx latest"],
      ["nginx:1.25", "registry-1.docker.io library/nginx 1.25"],
      ["team/web", "registry-1.docker.io team/web latest"],
      ["docker.io/team/web:2", "registry-1.docker.io team/web 2"],
      ["localhost:5000/a/b:c", "localhost:5000 a/b c"],
      ["registry.example/a:1@sha256:ab", "registry.example a 1 sha256:ab"],
      ["registry.example/a@sha256:ab", "registry.example a sha256:ab"],
    ];
    for (const [image, words] of cases) {
      const { registry, repository, tag, digest } = parseImage(image);
      assert.equal([registry, repository, tag, digest].filter(Boolean).join(" "), words, image);
    }
  });
});
