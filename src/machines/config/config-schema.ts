/**
 * What a machine's config may hold, as JSON Schema: one object per object of the specification. Every object
 * accepts unknown keys, because a config is returned as received; `config.ts` warns about them and holds the rules
 * that involve more than one field.
 */
import type { Static, TProperties } from "typebox";
import { Hardware } from "#hosts/compute-schema.ts";
import { acts, refused, warned } from "#http/field-support.ts";
import { Type } from "#http/schema.ts";
import { MACHINE_LIMITS } from "../limits.ts";

const optional = <T extends TProperties>(properties: T) => Type.Partial(Type.Object(properties));
const text = Type.String();
const texts = Type.Array(Type.String());
const flag = Type.Boolean();
const nonNegativeInteger = Type.Integer({ minimum: 0 });
const port = Type.Integer({ minimum: 1, maximum: 65535 });
const textMap = Type.Record(Type.String(), Type.String());
const absolute = Type.String({ pattern: "^/", description: "An absolute path." });
const wordSchema = Type.String({ pattern: "^[!-~]+$", description: "Without spaces." });
const hostname = Type.String({ pattern: "^[!-~]*$", maxLength: 253 });
const OPTION = "[A-Za-z0-9_-]+";
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

const DnsOption = Type.Union([
  Type.String({ pattern: `^${OPTION}(:${OPTION})?$`, description: "Such as `ndots:2`." }),
  Type.Object({
    name: acts(Type.String({ pattern: `^${OPTION}$` }), "Name, such as `ndots`."),
    value: Type.Optional(acts(Type.String({ pattern: "^[A-Za-z0-9_-]*$" }), "Value, such as `2`.")),
  }),
]);

const CheckFields = {
  type: acts(literals(["tcp", "http"]), "Whether a connection is enough, or an HTTP response is required."),
  port: acts(port, "Port to check; the service's own port by default."),
  interval: acts(Duration, "Interval between checks."),
  timeout: acts(Duration, "Timeout of one check."),
  grace_period: acts(Duration, "Time after the start during which failures do not count."),
  method: acts(text, "Method of the request; GET by default."),
  path: acts(text, "Path of the request."),
  protocol: acts(literals(["http", "https"]), "Protocol; http by default."),
  tls_server_name: acts(text, "The expected name in the certificate."),
  tls_skip_verify: acts(flag, "Accept any certificate."),
  kind: acts(
    literals(["informational", "readiness"]),
    "readiness (default): a failing machine gets no requests; informational: a failure is only shown.",
  ),
  headers: acts(
    Type.Array(
      Type.Object({
        name: acts(Type.String({ minLength: 1 }), "Name of the header."),
        values: acts(texts, "Values, sent in this order."),
      }),
    ),
    "Headers of the request.",
  ),
};
export const Check = optional(CheckFields);

const PersistRootfs = acts(
  Type.Union([
    Type.Literal("never"),
    Type.Literal("restart"),
    Type.Literal("always"),
    Type.Integer({ minimum: 0, maximum: 3 }),
  ]),
  "When the root disk is kept: never, across restarts of one version, or always.",
);

export const Guest = optional({
  ...Hardware,
  cpus: acts(Type.Integer({ minimum: 1, maximum: 1024 }), "Number of CPUs; 1 by default."),
  memory_mb: acts(
    Type.Integer({ minimum: 256, maximum: 16_777_216, multipleOf: 256 }),
    "Memory in MB, a multiple of 256; 256 by default.",
  ),
  max_memory_mb: warned(nonNegativeInteger, "a machine has memory_mb from its start on"),
  required_host_features: refused(texts, "no host offers such a feature"),
  persist_rootfs: PersistRootfs,
});

const variable = acts(Type.String({ pattern: ENV_NAME }), "The name of an environment variable.");
const EnvFrom = optional({
  env_var: variable,
  field_ref: acts(
    literals(["id", "version", "app_name", "private_ip", "region", "image"]),
    "The property of the machine that is its value.",
  ),
});
const ProcessSecret = Type.Object({
  env_var: variable,
  name: Type.Optional(acts(text, "Name of the secret; the variable's name by default.")),
});

const File = Type.Object({
  guest_path: acts(absolute, "Absolute path of the file."),
  raw_value: Type.Optional(acts(text, "The contents in base64.")),
  secret_name: Type.Optional(acts(text, "A secret of the app that holds the contents in base64.")),
  mode: Type.Optional(acts(Type.Integer({ minimum: 0, maximum: 0o7777 }), "Permissions; 0644 by default.")),
  image_config: Type.Optional(refused(text, "the contents come from raw_value or secret_name")),
});

const Mount = Type.Object({
  volume: Type.Optional(acts(text, "The volume's id. May be left out of an update to keep it.")),
  path: acts(absolute, "Mount point in the machine."),
  name: Type.Optional(acts(text, "The volume's name; without an id, a free volume of this name is taken.")),
  extend_threshold_percent: Type.Optional(
    acts(Type.Integer({ minimum: 0, maximum: 100 }), "Grow the volume at this usage, in percent."),
  ),
  add_size_gb: Type.Optional(acts(nonNegativeInteger, "Growth step in GB.")),
  size_gb_limit: Type.Optional(acts(nonNegativeInteger, "Maximum size in GB.")),
  encrypted: Type.Optional(acts(flag, "True refuses a volume that is not encrypted.")),
  add_size_percent: Type.Optional(acts(nonNegativeInteger, "Growth step in percent of its size.")),
  min_add_size_gb: Type.Optional(acts(nonNegativeInteger, "Minimum growth step in GB.")),
  size_gb: Type.Optional(
    acts(nonNegativeInteger, "The expected size of the volume; a different size gives a warning."),
  ),
});

const Process = optional({
  entrypoint: acts(texts, "Replaces the image's."),
  cmd: acts(texts, "Replaces the image's."),
  env: acts(textMap, "For this process only."),
  env_from: acts(Type.Array(EnvFrom), "Environment variables with properties of the machine."),
  exec: acts(texts, "Run this instead of entrypoint and cmd."),
  user: acts(text, "User of the process."),
  ignore_app_secrets: acts(flag, "Run the process without the app's secrets."),
  secrets: acts(Type.Array(ProcessSecret), "Secrets of the app, by environment variable."),
});

const Port = optional({
  port: acts(port, "Public port."),
  start_port: acts(port, "The first of a range of ports."),
  end_port: acts(port, "The last of a range of ports."),
  // Go clients that are generated from the schema would call both fields the same.
  "end-port": { ...acts(port, "The same as end_port."), "x-go-name": "EndPortWithDash" },
  handlers: acts(
    Type.Array(literals(["http", "tcp", "tls", "proxy_proto", "pg_tls"])),
    "Connection handlers; a TCP port without any stays closed to the internet.",
  ),
  force_https: acts(flag, "Redirect http to https."),
  http_options: acts(
    optional({
      compress: acts(flag, "Compress responses."),
      h2_backend: acts(flag, "Use HTTP/2 without TLS to the machine."),
      idle_timeout: acts(nonNegativeInteger, "Idle timeout in seconds."),
      headers_read_timeout: acts(
        nonNegativeInteger,
        "Timeout of the request head in seconds; at most 60, 10 by default.",
      ),
      routes: acts(
        Type.Optional(
          Type.Array(
            Type.String({
              pattern: "^(/([A-Za-z0-9._~%+@-]+|:[A-Za-z0-9_]+))*(/\\*?)?$",
              minLength: 1,
              maxLength: 200,
            }),
            { maxItems: MACHINE_LIMITS.counted_routes },
          ),
        ),
        'Routes whose responses are counted on their own, such as "/users/:id" or "/assets/*"; the others count together.',
      ),
      replay_cache: warned(Type.Array(Type.Unknown()), "every request is routed independently, also after a replay"),
      response: acts(
        optional({
          headers: acts(
            Type.Record(Type.String(), Type.Union([text, texts, flag, Type.Null()])),
            "Headers to set; false or null removes one.",
          ),
          pristine: acts(flag, "Add no headers."),
        }),
        "Changes to responses.",
      ),
    }),
    "For the http handler.",
  ),
  tls_options: acts(
    optional({
      alpn: acts(texts, "Offered ALPN protocols."),
      default_self_signed: acts(flag, "Serve unknown server names, with a self-signed certificate."),
      versions: acts(Type.Array(literals(["TLSv1.2", "TLSv1.3"])), "Accepted TLS versions; both by default."),
    }),
    "For the tls handler.",
  ),
  proxy_proto_options: acts(
    optional({ version: acts(literals(["v1", "v2", "1", "2", ""]), "Version of the PROXY protocol; v1 by default.") }),
    "For the proxy_proto handler.",
  ),
});

export const Service = Type.Object(
  {
    protocol: acts(literals(["tcp", "udp"]), "Transport protocol."),
    internal_port: acts(port, "Port on which the machine listens."),
    concurrency: Type.Optional(
      acts(
        optional({
          type: acts(literals(["connections", "requests"]), "What counts as load."),
          soft_limit: acts(nonNegativeInteger, "Above this, other machines are preferred."),
          hard_limit: acts(nonNegativeInteger, "Maximum."),
        }),
        "Concurrency limits of a machine.",
      ),
    ),
    ports: Type.Optional(
      acts(Type.Array(Port), "Public ports; without any it is reachable on the private network only."),
    ),
    autostart: Type.Optional(acts(flag, "Requests start stopped machines.")),
    autostop: Type.Optional(
      acts(
        Type.Union([flag, Type.Literal("off"), Type.Literal("stop"), Type.Literal("suspend")]),
        "Action on an idle machine: `off` or false, `stop` or true, or `suspend`.",
      ),
    ),
    min_machines_running: Type.Optional(acts(nonNegativeInteger, "Number of machines that are not stopped when idle.")),
    checks: Type.Optional(acts(Type.Array(Check), "Health checks; a failing machine gets no requests.")),
    force_instance_key: Type.Optional(warned(text, "a request goes to any machine that has room")),
    force_instance_description: Type.Optional(warned(text, "it only describes force_instance_key")),
  },
  { title: "MachineService" },
);

const Sqlite = Type.Object({
  dir: acts(absolute, "Directory of the databases, on the machine's volume. Each file in it is one."),
  backup: Type.Optional(
    acts(
      Type.String({
        pattern: "^https?://[!-~]+/[!-~]+$",
        maxLength: 1024,
        description: "An URL: https://host/bucket[/path].",
      }),
      "Where the primary stores backups: `https://host/bucket[/path]`. Credentials are the app's secrets HANGAR_OBJECTS_ACCESS_KEY and HANGAR_OBJECTS_SECRET_KEY, which only the node gets.",
    ),
  ),
  ack: Type.Optional(
    acts(
      literals(["none", "one", "quorum"]),
      "Replicas that must have a transaction before it is acknowledged; none by default.",
    ),
  ),
  cluster_size: Type.Optional(
    acts(Type.Integer({ minimum: 2, maximum: 99 }), "The number of machines with a node, for ack: quorum."),
  ),
});

const Statics = Type.Object({
  guest_path: acts(text, "The folder in the image, or in the bucket."),
  url_prefix: acts(text, "URL path prefix of the files."),
  tigris_bucket: Type.Optional(acts(text, "A bucket instead of the image.")),
  index_document: Type.Optional(acts(text, "The file for a folder.")),
});

export const Config = Type.Object(
  {
    image: acts(Type.String({ minLength: 1, maxLength: 1024 }), "Registry path of the image."),
    auto_destroy: Type.Optional(acts(flag, "Destroy the machine when it exits.")),
    checks: Type.Optional(acts(Type.Record(Type.String(), Check), "Health checks by name.")),
    dns: Type.Optional(
      acts(
        optional({
          nameservers: acts(Type.Array(wordSchema), "DNS servers instead of the platform's."),
          searches: acts(Type.Array(wordSchema), "Search domains."),
          options: acts(Type.Array(DnsOption), "Options of the resolver, as in resolv.conf."),
          dns_forward_rules: warned(Type.Array(Type.Unknown()), "name the servers to ask in dns.nameservers"),
          skip_registration: acts(flag, "Do not register the machine in the private DNS."),
          hostname: acts(hostname, "Host name of the machine."),
          hostname_fqdn: acts(hostname, "Fully qualified host name of the machine."),
        }),
        "DNS settings inside the machine.",
      ),
    ),
    env: Type.Optional(acts(textMap, "Environment variables.")),
    files: Type.Optional(acts(Type.Array(File), "Files written into the machine before it starts.")),
    guest: Type.Optional(acts(Guest, "Size of the machine.")),
    init: Type.Optional(
      acts(
        optional({
          exec: acts(texts, "Run this instead of entrypoint and cmd."),
          entrypoint: acts(texts, "Replaces the image's."),
          cmd: acts(texts, "Replaces the image's."),
          kernel_args: Hardware.kernel_args,
          tty: acts(flag, "Allocate a terminal."),
          swap_size_mb: acts(nonNegativeInteger, "Swap in MB."),
        }),
        "The machine's main process.",
      ),
    ),
    metadata: Type.Optional(acts(textMap, "User-defined pairs; lists can be filtered by them.")),
    metrics: Type.Optional(
      acts(
        Type.Object({
          port: acts(port, "Where metrics are scraped."),
          path: acts(text, "Where metrics are scraped."),
          https: Type.Optional(acts(flag, "Scrape over TLS.")),
          native_histograms: Type.Optional(acts(flag, "Scrape in protobuf, the format that has native histograms.")),
        }),
        "Endpoint of the machine's own metrics.",
      ),
    ),
    mounts: Type.Optional(acts(Type.Array(Mount, { maxItems: 1 }), "At most one volume per machine.")),
    processes: Type.Optional(acts(Type.Array(Process), "Several programs in one machine.")),
    restart: Type.Optional(
      acts(
        Type.Object({
          policy: acts(
            Type.Union([
              Type.Literal("no"),
              Type.Literal("on-failure"),
              Type.Literal("always"),
              Type.Literal("", { description: "Same as absent." }),
            ]),
            "When the machine is restarted after its program exits.",
          ),
          max_retries: Type.Optional(acts(nonNegativeInteger, "For on-failure: give up after this many restarts.")),
        }),
        "Restart policy.",
      ),
    ),
    schedule: Type.Optional(
      acts(literals(["hourly", "daily", "weekly", "monthly"]), "Start it at this interval; it should exit by itself."),
    ),
    services: Type.Optional(acts(Type.Array(Service), "Services that the edge proxy publishes.")),
    size: Type.Optional(acts(text, "A named size such as `shared-cpu-2x`; instead of guest.")),
    sqlite: Type.Optional(
      acts(Sqlite, "A node of replicated SQLite beside the machine's programs, whatever the image; needs a volume."),
    ),
    standbys: Type.Optional(acts(texts, "Machines of the app to stand by for, by their ids; only without services.")),
    statics: Type.Optional(
      acts(Type.Union([Statics, Type.Array(Statics)]), "Static files that the edge proxy serves."),
    ),
    stop_config: Type.Optional(
      acts(
        optional({
          signal: acts(literals(SIGNALS), "Stop signal; SIGINT by default."),
          timeout: acts(Duration, "Time until SIGKILL."),
        }),
        "Stop signal and timeout.",
      ),
    ),
    // Sent by existing clients.
    containers: Type.Optional(warned(Type.Array(Type.Unknown()), "a machine runs one image; see processes")),
    volumes: Type.Optional(warned(Type.Array(Type.Unknown()), "they are for containers; see mounts")),
    rootfs: Type.Optional(
      acts(
        optional({
          persist: PersistRootfs,
          size_gb: acts(
            Type.Integer({ minimum: 0, maximum: MACHINE_LIMITS.root_disk_gb }),
            "Size of a new root disk in GB; 8 by default.",
          ),
        }),
        "The root disk.",
      ),
    ),
    cache_drive: Type.Optional(warned(Type.Unknown(), "there is no disk beside the root disk and the volume")),
    spot: Type.Optional(warned(Type.Unknown(), "machines have no price")),
    disable_machine_autostart: Type.Optional(acts(flag, "Requests never start the machine.")),
  },
  { title: "MachineConfig" },
);

export type MachineConfig = Static<typeof Config>;
export type CheckConfig = Static<typeof Check>;
export type ServiceConfig = Static<typeof Service>;
