/**
 * The schema of an app file: `hangar.toml`, or an unchanged `fly.toml`. One table per section; a value of the wrong
 * type is an error, an unknown key a warning, and all of them are reported at once.
 */
import { closest } from "#core/words.ts";

type Kind = keyof typeof KINDS;
type Shape = { readonly [key: string]: Kind | Shape | readonly [Shape] };

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

const KINDS = {
  text: { words: "text", fits: (value: unknown) => typeof value === "string" },
  whole: { words: "a whole number", fits: (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0 },
  number: { words: "a number", fits: (value: unknown) => typeof value === "number" && value >= 0 },
  flag: { words: "true or false", fits: (value: unknown) => typeof value === "boolean" },
  texts: { words: "a list of texts", fits: areTexts },
  words: { words: "text or a list of texts", fits: (value: unknown) => typeof value === "string" || areTexts(value) },
  map: {
    words: "a table of texts",
    fits: (value: unknown) =>
      isTable(value) && Object.values(value).every((one) => ["string", "number", "boolean"].includes(typeof one)),
  },
  /** `15s`, or a bare number in the key's unit. */
  time: {
    words: "a time such as 15s",
    fits: (value: unknown) => typeof value === "number" || (typeof value === "string" && /^\d/.test(value)),
  },
  /** `512mb`, `1GB`, or a bare number. */
  size: {
    words: "a size such as 512mb or 1gb",
    fits: (value: unknown) =>
      Number.isSafeInteger(value) || (typeof value === "string" && /^\d+\s*([mg]b?)?$/i.test(value)),
  },
  choice: {
    words: "true, false or text",
    fits: (value: unknown) => typeof value === "boolean" || typeof value === "string",
  },
  any: { words: "anything", fits: () => true },
} as const satisfies Record<string, { words: string; fits(value: unknown): boolean }>;

const CHECK = {
  type: "text",
  port: "whole",
  interval: "time",
  timeout: "time",
  grace_period: "time",
  method: "text",
  path: "text",
  protocol: "text",
  headers: "any",
  tls_server_name: "text",
  tls_skip_verify: "flag",
} as const satisfies Shape;

const SERVICE = {
  internal_port: "whole",
  protocol: "text",
  auto_stop_machines: "choice",
  auto_start_machines: "flag",
  min_machines_running: "whole",
  processes: "texts",
  concurrency: { type: "text", soft_limit: "whole", hard_limit: "whole" },
} as const satisfies Shape;

const OF_GROUPS = { processes: "texts" } as const satisfies Shape;

const MOUNT = {
  ...OF_GROUPS,
  source: "text",
  destination: "text",
  initial_size: "size",
  snapshot_retention: "whole",
  auto_extend_size_threshold: "whole",
  auto_extend_size_increment: "size",
  auto_extend_size_limit: "size",
  scheduled_snapshots: "flag",
} as const satisfies Shape;

const VM = {
  ...OF_GROUPS,
  size: "text",
  memory: "size",
  cpus: "whole",
  cpu_kind: "text",
  gpu_kind: "text",
  gpus: "whole",
  kernel_args: "texts",
  host_dedication_id: "text",
  persist_rootfs: "text",
} as const satisfies Shape;

const BUILD = {
  dockerfile: "text",
  args: "map",
  ignorefile: "text",
  target: "text",
  platform: "text",
} as const satisfies Shape;

/** An entry of `[processes]` that is a table: what one process group has of its own. */
export const PROCESS: Shape = {
  command: "words",
  entrypoint: "words",
  image: "text",
  build: { ...BUILD, context: "text" },
  env: "map",
  schedule: "text",
  once: "flag",
  kill_signal: "text",
  kill_timeout: "time",
};

const RESTART = { ...OF_GROUPS, policy: "text", retries: "whole" } as const satisfies Shape;
const METRICS = { ...OF_GROUPS, port: "whole", path: "text", https: "flag" } as const satisfies Shape;

export const FILE: Shape = {
  app: "text",
  image: "text",
  primary_region: "text",
  kill_signal: "text",
  kill_timeout: "time",
  swap_size_mb: "whole",
  console_command: "text",
  build: { ...BUILD, image: "text", builder: "text", buildpacks: "texts" },
  compose: { file: "text", profiles: "texts" },
  deploy: {
    strategy: "text",
    release_command: "text",
    release_command_timeout: "time",
    wait_timeout: "time",
    max_unavailable: "number",
  },
  egress: { policy: "text", allow: "texts" },
  alerts: [
    {
      alert: "text",
      record: "text",
      expr: "text",
      for: "text",
      keep_firing_for: "text",
      labels: "map",
      annotations: "map",
    },
  ],
  env: "map",
  processes: "any",
  experimental: { cmd: "words", entrypoint: "words", exec: "words", enable_consul: "flag" },
  http_service: { ...SERVICE, force_https: "flag", checks: [CHECK], http_options: "any", tls_options: "any" },
  services: [
    {
      ...SERVICE,
      ports: [
        {
          port: "whole",
          start_port: "whole",
          end_port: "whole",
          handlers: "texts",
          force_https: "flag",
          http_options: "any",
          tls_options: "any",
          proxy_proto_options: "any",
        },
      ],
      checks: [CHECK],
      tcp_checks: [CHECK],
      http_checks: [CHECK],
    },
  ],
  checks: "any",
  mounts: [MOUNT],
  vm: [VM],
  restart: [RESTART],
  sqlite: { dir: "text", backup: "text", ack: "text", cluster_size: "whole" },
  metrics: [METRICS],
  statics: [{ guest_path: "text", url_prefix: "text", tigris_bucket: "text", index_document: "text" }],
  files: [
    { ...OF_GROUPS, guest_path: "text", local_path: "text", raw_value: "text", secret_name: "text", mode: "whole" },
  ],
};

/** The shape of one entry of `[checks]`, whose keys are names. */
export const NAMED_CHECK: Shape = { ...CHECK, ...OF_GROUPS };

export interface Findings {
  problems: string[];
  warnings: string[];
}

export const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Validates a table; a list of tables may be a single one. */
export function inspect(value: unknown, shape: Shape, path: string, found: Findings): void {
  if (!isTable(value)) {
    found.problems.push(`${path} must be a table`);
    return;
  }
  for (const [key, one] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    const wanted = shape[key];
    if (wanted !== undefined) {
      inspectValue(one, wanted, at, found);
      continue;
    }
    const near = closest(key, Object.keys(shape));
    found.warnings.push(`${at} is not known here and is left out${near ? `; did you mean ${near}?` : ""}`);
  }
}

function inspectValue(value: unknown, wanted: Kind | Shape | readonly [Shape], at: string, found: Findings): void {
  if (typeof wanted === "string") {
    if (!KINDS[wanted].fits(value)) found.problems.push(`${at} must be ${KINDS[wanted].words}`);
  } else if (!isList(wanted)) {
    inspect(value, wanted, at, found);
  } else if (Array.isArray(value)) {
    for (const [i, entry] of value.entries()) inspect(entry, wanted[0], `${at}[${i}]`, found);
  } else {
    inspect(value, wanted[0], at, found);
  }
}

const isList = (wanted: Shape | readonly [Shape]): wanted is readonly [Shape] => Array.isArray(wanted);
