/**
 * What a machine's config may hold, as JSON Schema: one object per object of the specification. Every object
 * lets unknown keys pass, because a config must come back as it came; `config.ts` warns about them and holds
 * the rules that speak of more than one field.
 */
import type { Static, TProperties, TSchema } from "typebox";
import { Type } from "#http/schema.ts";

/** What a field means, for `hangar explain`, the API's pages and its description. */
const said = <T extends TSchema>(schema: T, description: string): T => ({ ...schema, description });
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
  type: said(literals(["tcp", "http"]), "Whether a connection is enough, or an answer has to come."),
  port: said(port, "Where it asks; the check of a service asks the port of the service."),
  interval: said(Duration, "How long from one to the next."),
  timeout: said(Duration, "How long an answer may take."),
  grace_period: said(Duration, "How long after its start a machine may still fail."),
  method: said(text, "Of the request; GET when left out."),
  path: said(text, "Of the request."),
  protocol: said(literals(["http", "https"]), "http when left out."),
  tls_server_name: said(text, "The name the certificate has to be for."),
  tls_skip_verify: said(flag, "Take any certificate."),
  kind: said(literals(["informational", "readiness"]), "Kept as it comes."),
  headers: Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), values: texts })),
};
export const Check = optional(CheckFields);

export const Guest = optional({
  cpu_kind: said(text, "shared or performance."),
  gpu_kind: said(text, "Kept as it comes."),
  host_dedication_id: said(text, "Kept as it comes."),
  cpus: Type.Integer({ minimum: 1, maximum: 1024, description: "1 when left out." }),
  gpus: Type.Integer({ minimum: 0, maximum: 64 }),
  memory_mb: Type.Integer({
    minimum: 256,
    maximum: 16_777_216,
    multipleOf: 256,
    description: "A multiple of 256; 256 when left out.",
  }),
  max_memory_mb: said(whole, "Kept as it comes."),
  required_host_features: said(texts, "Kept as it comes."),
  kernel_args: said(texts, "Kept as it comes; machines share the kernel of their host."),
  persist_rootfs: Type.Union(
    [Type.Literal("never"), Type.Literal("restart"), Type.Literal("always"), Type.Integer({ minimum: 0, maximum: 3 })],
    { description: "When the root disk is kept: never, across restarts of one version, or always." },
  ),
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
  path: said(absolute, "Where the machine sees it."),
  name: Type.Optional(said(text, "The volume's name.")),
  extend_threshold_percent: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 100, description: "Grow the volume when so much of it is used." }),
  ),
  add_size_gb: Type.Optional(said(whole, "Grow it by so much at a time.")),
  size_gb_limit: Type.Optional(said(whole, "Never grow it beyond.")),
  encrypted: Type.Optional(flag),
  add_size_percent: Type.Optional(said(whole, "Grow it by this share of its size.")),
  min_add_size_gb: Type.Optional(said(whole, "Kept as it comes.")),
  size_gb: Type.Optional(whole),
});

const Process = optional({
  entrypoint: said(texts, "Instead of the image's."),
  cmd: said(texts, "Instead of the image's."),
  env: said(textMap, "For this process only."),
  env_from: Type.Array(EnvFrom),
  exec: said(texts, "Run this instead of entrypoint and cmd."),
  user: said(text, "Who it runs as."),
  ignore_app_secrets: said(flag, "Do not give it the app's secrets."),
  secrets: said(Type.Array(ProcessSecret), "Secrets of the app, by the variable they come in."),
});

const Port = optional({
  port: said(port, "Open to the outside."),
  start_port: said(port, "The first of a range of ports."),
  end_port: said(port, "The last of a range of ports."),
  "end-port": port,
  handlers: said(
    Type.Array(literals(["http", "tcp", "tls", "proxy_proto", "pg_tls"])),
    "What is done with a connection, in this order; none passes bytes on.",
  ),
  force_https: said(flag, "Answer http with a redirect to https."),
  http_options: said(
    optional({
      compress: said(flag, "Compress answers."),
      h2_backend: said(flag, "Speak HTTP/2 without TLS to the machine."),
      idle_timeout: said(whole, "Seconds a connection may be silent."),
      headers_read_timeout: said(whole, "Seconds for the head of a request; at most a minute, 10 unless said."),
      replay_cache: Type.Array(Type.Unknown()),
      response: optional({
        headers: Type.Record(Type.String(), Type.Union([text, texts, flag, Type.Null()])),
        pristine: said(flag, "Add no headers."),
      }),
    }),
    "For the http handler.",
  ),
  tls_options: said(
    optional({
      alpn: said(texts, "Protocols that are offered."),
      default_self_signed: said(
        flag,
        "Answer server names that no app on the port has, with a self-signed certificate.",
      ),
      versions: said(texts, "TLS versions that are taken."),
    }),
    "For the tls handler.",
  ),
  proxy_proto_options: said(optional({ version: said(text, "v1 or v2.") }), "For the proxy_proto handler."),
});

export const Service = Type.Object(
  {
    protocol: literals(["tcp", "udp"]),
    internal_port: said(port, "Where the machine listens."),
    concurrency: Type.Optional(
      said(
        optional({
          type: said(literals(["connections", "requests"]), "What counts as load."),
          soft_limit: said(whole, "From here on, others are preferred."),
          hard_limit: said(whole, "No more than this."),
        }),
        "How much a machine takes at once.",
      ),
    ),
    ports: Type.Optional(said(Type.Array(Port), "Open to the outside; none, and it is for the private network only.")),
    autostart: Type.Optional(said(flag, "A request starts a machine that does not run.")),
    autostop: Type.Optional(
      Type.Union([flag, Type.Literal("off"), Type.Literal("stop"), Type.Literal("suspend")], {
        description: "What becomes of a machine that nobody asks: `off` or false, `stop` or true, or `suspend`.",
      }),
    ),
    min_machines_running: Type.Optional(said(whole, "So many are not stopped when idle.")),
    checks: Type.Optional(said(Type.Array(Check), "Machines that fail them get no requests.")),
    force_instance_key: Type.Optional(text),
    force_instance_description: Type.Optional(text),
  },
  { title: "MachineService" },
);

const Statics = Type.Object({
  guest_path: said(text, "The folder in the image, or in the bucket."),
  url_prefix: said(text, "Requests for paths below it are answered with files."),
  tigris_bucket: Type.Optional(said(text, "A bucket instead of the image.")),
  index_document: Type.Optional(said(text, "The file for a folder.")),
});

export const Config = Type.Object(
  {
    image: Type.String({ minLength: 1, maxLength: 1024, description: "Registry path of the image." }),
    auto_destroy: Type.Optional(said(flag, "It is gone when it is done.")),
    checks: Type.Optional(said(Type.Record(Type.String(), Check), "By name; they tell whether the machine is well.")),
    dns: Type.Optional(
      said(
        optional({
          nameservers: said(texts, "Instead of the platform's."),
          searches: said(texts, "Names that are tried behind a short one."),
          options: Type.Array(Type.Unknown()),
          dns_forward_rules: said(Type.Array(Type.Unknown()), "Kept as it comes."),
          skip_registration: said(flag, "Keep it out of private names."),
          hostname: said(text, "What it calls itself."),
          hostname_fqdn: said(text, "The same, in full."),
        }),
        "How names are looked up inside.",
      ),
    ),
    env: Type.Optional(said(textMap, "Environment variables.")),
    files: Type.Optional(said(Type.Array(File), "Written into the machine before it starts.")),
    guest: Type.Optional(said(Guest, "How big it is.")),
    init: Type.Optional(
      said(
        optional({
          exec: said(texts, "Run this instead of entrypoint and cmd."),
          entrypoint: said(texts, "Instead of the image's."),
          cmd: said(texts, "Instead of the image's."),
          kernel_args: said(texts, "Kept as it comes."),
          tty: said(flag, "Give it a terminal."),
          swap_size_mb: said(whole, "Memory on disk."),
        }),
        "What it runs.",
      ),
    ),
    metadata: Type.Optional(said(textMap, "Yours, by key; lists can be filtered by it.")),
    metrics: Type.Optional(
      said(
        Type.Object({
          port: said(port, "Where they are asked for."),
          path: said(text, "Where they are asked for."),
          https: Type.Optional(flag),
        }),
        "Where its own metrics are read from.",
      ),
    ),
    mounts: Type.Optional(Type.Array(Mount, { maxItems: 1, description: "At most one volume per machine." })),
    processes: Type.Optional(said(Type.Array(Process), "Several programs in one machine.")),
    restart: Type.Optional(
      said(
        Type.Object({
          policy: Type.Union([
            Type.Literal("no"),
            Type.Literal("on-failure"),
            Type.Literal("always"),
            Type.Literal("", { description: "The same as left out." }),
          ]),
          max_retries: Type.Optional(said(whole, "For on-failure: give up after so many.")),
        }),
        "What happens when its program ends.",
      ),
    ),
    schedule: Type.Optional(
      said(literals(["hourly", "daily", "weekly", "monthly"]), "Start it so often; it should end by itself."),
    ),
    services: Type.Optional(said(Type.Array(Service), "What is open, and how.")),
    size: Type.Optional(Type.String({ description: "A named size such as `shared-cpu-2x`; instead of guest." })),
    standbys: Type.Optional(Type.Array(text, { description: "Machines to stand by for; only without services." })),
    statics: Type.Optional(
      said(Type.Union([Statics, Type.Array(Statics)]), "Files that the front door serves by itself."),
    ),
    stop_config: Type.Optional(
      said(
        optional({
          signal: said(literals(SIGNALS), "What it is sent first; SIGINT when left out."),
          timeout: said(Duration, "How long it may take before SIGKILL."),
        }),
        "How it is stopped.",
      ),
    ),
    // Known to clients in the wild; kept as they come.
    containers: Type.Optional(said(Type.Array(Type.Unknown()), "Kept as it comes.")),
    volumes: Type.Optional(said(Type.Array(Type.Unknown()), "Kept as it comes.")),
    rootfs: Type.Optional(said(Type.Unknown(), "Kept as it comes.")),
    cache_drive: Type.Optional(said(Type.Unknown(), "Kept as it comes.")),
    spot: Type.Optional(said(Type.Unknown(), "Kept as it comes.")),
    disable_machine_autostart: Type.Optional(said(flag, "A request never starts it.")),
  },
  { title: "MachineConfig" },
);

export type MachineConfig = Static<typeof Config>;
export type CheckConfig = Static<typeof Check>;
export type ServiceConfig = Static<typeof Service>;
