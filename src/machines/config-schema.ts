/**
 * What a machine's config may hold, as JSON Schema: one object per object of the specification. Every object
 * lets unknown keys pass, because a config must come back as it came; `config.ts` warns about them and holds
 * the rules that speak of more than one field.
 */
import type { Static, TProperties } from "typebox";
import { Type } from "#http/schema.ts";

const optional = <T extends TProperties>(properties: T) => Type.Partial(Type.Object(properties));
const text = Type.String();
const texts = Type.Array(Type.String());
const flag = Type.Boolean();
const whole = Type.Integer({ minimum: 0 });
const port = Type.Integer({ minimum: 1, maximum: 65535 });
const textMap = Type.Record(Type.String(), Type.String());
const absolute = Type.String({ pattern: "^/", description: "An absolute path." });
const ENV_NAME = "^[A-Za-z_][A-Za-z0-9_]*$";

export const Duration = Type.Union(
  [
    Type.Integer({ minimum: 0 }),
    Type.String({ pattern: "^(\\d+(\\.\\d+)?(ns|us|µs|ms|s|m|h|d))+$|^0$", description: "such as 15s or 1m30s" }),
  ],
  { description: "Nanoseconds, or a number with a unit such as `15s`." },
);

export const SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"] as const;
export const ALL_SIGNALS = [
  ...SIGNALS,
  "SIGABRT",
  "SIGALRM",
  "SIGFPE",
  "SIGILL",
  "SIGPIPE",
  "SIGSEGV",
  "SIGTRAP",
] as const;
const literals = <const T extends readonly string[]>(names: T) =>
  Type.Unsafe<T[number]>(Type.Union(names.map((name) => Type.Literal(name))));

const CheckFields = {
  type: literals(["tcp", "http"]),
  port,
  interval: Duration,
  timeout: Duration,
  grace_period: Duration,
  method: text,
  path: text,
  protocol: literals(["http", "https"]),
  tls_server_name: text,
  tls_skip_verify: flag,
  kind: literals(["informational", "readiness"]),
  headers: Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), values: texts })),
};
export const Check = optional(CheckFields);

export const Guest = optional({
  cpu_kind: text,
  gpu_kind: text,
  host_dedication_id: text,
  cpus: Type.Integer({ minimum: 1, maximum: 1024, description: "1 when left out." }),
  gpus: Type.Integer({ minimum: 0, maximum: 64 }),
  memory_mb: Type.Integer({
    minimum: 256,
    maximum: 16_777_216,
    multipleOf: 256,
    description: "A multiple of 256; 256 when left out.",
  }),
  max_memory_mb: whole,
  required_host_features: texts,
  kernel_args: texts,
  persist_rootfs: Type.Union([
    Type.Literal("never"),
    Type.Literal("restart"),
    Type.Literal("always"),
    Type.Integer({ minimum: 0, maximum: 3 }),
  ]),
});

const EnvFrom = optional({ env_var: text, field_ref: text });
const ProcessSecret = Type.Object({
  env_var: Type.String({ pattern: ENV_NAME, description: "The name of an environment variable." }),
  name: Type.Optional(text),
});

const File = Type.Object({
  guest_path: absolute,
  raw_value: Type.Optional(Type.String({ description: "The contents in base64." })),
  secret_name: Type.Optional(Type.String({ description: "A secret of the app that holds the contents in base64." })),
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 })),
  image_config: Type.Optional(text),
});

const Mount = Type.Object({
  volume: Type.Optional(Type.String({ description: "The volume's id. May be left out of an update to keep it." })),
  path: absolute,
  name: Type.Optional(text),
  extend_threshold_percent: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  add_size_gb: Type.Optional(whole),
  size_gb_limit: Type.Optional(whole),
  encrypted: Type.Optional(flag),
  add_size_percent: Type.Optional(whole),
  min_add_size_gb: Type.Optional(whole),
  size_gb: Type.Optional(whole),
});

const Process = optional({
  entrypoint: texts,
  cmd: texts,
  env: textMap,
  env_from: Type.Array(EnvFrom),
  exec: texts,
  user: text,
  ignore_app_secrets: flag,
  secrets: Type.Array(ProcessSecret),
});

const Port = optional({
  port,
  start_port: port,
  end_port: port,
  "end-port": port,
  handlers: Type.Array(literals(["http", "tcp", "tls", "proxy_proto", "pg_tls"])),
  force_https: flag,
  http_options: optional({
    compress: flag,
    h2_backend: flag,
    idle_timeout: whole,
    headers_read_timeout: whole,
    replay_cache: Type.Array(Type.Unknown()),
    response: optional({
      headers: Type.Record(Type.String(), Type.Union([text, texts, flag, Type.Null()])),
      pristine: flag,
    }),
  }),
  tls_options: optional({ alpn: texts, default_self_signed: flag, versions: texts }),
  proxy_proto_options: optional({ version: text }),
});

export const Service = Type.Object(
  {
    protocol: literals(["tcp", "udp"]),
    internal_port: port,
    concurrency: Type.Optional(
      optional({ type: literals(["connections", "requests"]), soft_limit: whole, hard_limit: whole }),
    ),
    ports: Type.Optional(Type.Array(Port)),
    autostart: Type.Optional(flag),
    autostop: Type.Optional(
      Type.Union([flag, Type.Literal("off"), Type.Literal("stop"), Type.Literal("suspend")], {
        description: "`off` or false, `stop` or true, or `suspend`.",
      }),
    ),
    min_machines_running: Type.Optional(whole),
    checks: Type.Optional(Type.Array(Check)),
    force_instance_key: Type.Optional(text),
    force_instance_description: Type.Optional(text),
  },
  { title: "MachineService" },
);

const Statics = Type.Object({
  guest_path: text,
  url_prefix: text,
  tigris_bucket: Type.Optional(text),
  index_document: Type.Optional(text),
});

export const Config = Type.Object(
  {
    image: Type.String({ minLength: 1, maxLength: 1024, description: "Registry path of the image." }),
    auto_destroy: Type.Optional(flag),
    checks: Type.Optional(Type.Record(Type.String(), Check)),
    dns: Type.Optional(
      optional({
        nameservers: texts,
        searches: texts,
        options: Type.Array(Type.Unknown()),
        dns_forward_rules: Type.Array(Type.Unknown()),
        skip_registration: flag,
        hostname: text,
        hostname_fqdn: text,
      }),
    ),
    env: Type.Optional(textMap),
    files: Type.Optional(Type.Array(File)),
    guest: Type.Optional(Guest),
    init: Type.Optional(
      optional({ exec: texts, entrypoint: texts, cmd: texts, kernel_args: texts, tty: flag, swap_size_mb: whole }),
    ),
    metadata: Type.Optional(textMap),
    metrics: Type.Optional(Type.Object({ port, path: text, https: Type.Optional(flag) })),
    mounts: Type.Optional(Type.Array(Mount, { maxItems: 1, description: "At most one volume per machine." })),
    processes: Type.Optional(Type.Array(Process)),
    restart: Type.Optional(
      Type.Object({
        policy: Type.Union([
          Type.Literal("no"),
          Type.Literal("on-failure"),
          Type.Literal("always"),
          Type.Literal("", { description: "The same as left out." }),
        ]),
        max_retries: Type.Optional(whole),
      }),
    ),
    schedule: Type.Optional(literals(["hourly", "daily", "weekly", "monthly"])),
    services: Type.Optional(Type.Array(Service)),
    size: Type.Optional(Type.String({ description: "A named size such as `shared-cpu-2x`; instead of guest." })),
    standbys: Type.Optional(Type.Array(text, { description: "Machines to stand by for; only without services." })),
    statics: Type.Optional(Type.Union([Statics, Type.Array(Statics)])),
    stop_config: Type.Optional(
      optional({
        signal: literals(SIGNALS),
        timeout: Duration,
      }),
    ),
    // Known to clients in the wild; kept as they come.
    containers: Type.Optional(Type.Array(Type.Unknown())),
    volumes: Type.Optional(Type.Array(Type.Unknown())),
    rootfs: Type.Optional(Type.Unknown()),
    cache_drive: Type.Optional(Type.Unknown()),
    spot: Type.Optional(Type.Unknown()),
    disable_machine_autostart: Type.Optional(flag),
  },
  { title: "MachineConfig" },
);

export type MachineConfig = Static<typeof Config>;
export type CheckConfig = Static<typeof Check>;
export type ServiceConfig = Static<typeof Service>;
