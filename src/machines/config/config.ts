/**
 * Validates rules of a machine config that involve more than one field, fills in defaults, and finds values that
 * deserve a warning. Every function accepts a config of any shape, so that one response lists all problems, the
 * schema's and these.
 */
import type { Problem } from "#core/errors.ts";
import { closest } from "#core/words.ts";
import { idleFields, refusedFields, strangeFields } from "#http/field-support.ts";
import { problems } from "#http/validate.ts";
import { rejectInvalid } from "../lifecycle/rules.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { Config, type MachineConfig, type ServiceConfig } from "./config-schema.ts";
import { sqliteProblems } from "./sqlite-config.ts";

type Loose = Record<string, unknown>;
const isObject = (value: unknown): value is Loose =>
  value !== null && typeof value === "object" && !Array.isArray(value);
const objects = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isObject) : []);
const isNumber = (value: unknown): value is number => typeof value === "number";

/** Validates rules across fields; `path` is the config's location in the request. */
export function configProblems(config: unknown, path: string): Problem[] {
  if (!isObject(config)) return [];
  return RULES.flatMap((rule) => rule(config, path));
}

type Rule = (config: Loose, path: string) => Problem[];

const RULES: readonly Rule[] = [
  sizes,
  checks,
  files,
  mounts,
  services,
  environment,
  metadata,
  sqliteProblems,
  function standbys(config, path) {
    const served = Array.isArray(config["services"]) && config["services"].length > 0;
    const stands = Array.isArray(config["standbys"]) && config["standbys"].length > 0;
    if (!served || !stands) return [];
    return [{ path: `${path}.standbys`, problem: "is only for machines without services" }];
  },
  function imageReference(config, path) {
    const { image } = config;
    if (typeof image !== "string" || image === "" || !/\s|\p{Cc}/u.test(image)) return [];
    return [{ path: `${path}.image`, problem: "holds blanks", allowed: "registry/repository:tag@sha256:digest" }];
  },
];

function sizes(config: Loose, path: string): Problem[] {
  const { size, guest } = config;
  if (size === undefined) return [];
  const found: Problem[] = [];
  if (isObject(guest) && Object.keys(guest).length > 0) {
    found.push({ path: `${path}.size`, problem: "and guest exclude each other; send one of them" });
  }
  if (typeof size === "string" && !Object.hasOwn(SIZES, size)) {
    const near = closest(size, Object.keys(SIZES));
    found.push({
      path: `${path}.size`,
      problem: `is not a known size${near ? `, did you mean ${near}?` : ""}`,
      allowed: Object.keys(SIZES).join(", "),
    });
  }
  return found;
}

/** Checks of a service default to its port; top-level checks must name one. */
function checks(config: Loose, path: string): Problem[] {
  if (!isObject(config["checks"])) return [];
  return Object.entries(config["checks"]).flatMap(([name, check]) =>
    isObject(check) && check["port"] === undefined
      ? [{ path: `${path}.checks.${name}.port`, problem: "is required", allowed: "a whole number of 1 to 65535" }]
      : [],
  );
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function files(config: Loose, path: string): Problem[] {
  return objects(config["files"]).flatMap((file, index) => {
    const at = `${path}.files.${index}`;
    const given = ["raw_value", "secret_name"].filter((name) => typeof file[name] === "string");
    const found: Problem[] = [];
    if (given.length !== 1 && !file["image_config"]) {
      found.push({ path: at, problem: "must have exactly one of raw_value and secret_name" });
    }
    const { raw_value } = file;
    if (typeof raw_value === "string" && !BASE64.test(raw_value.replaceAll(/[\r\n]/g, ""))) {
      found.push({ path: `${at}.raw_value`, problem: "is not base64" });
    }
    return found;
  });
}

function mounts(config: Loose, path: string): Problem[] {
  return objects(config["mounts"]).flatMap((mount, index) => {
    const at = `${path}.mounts.${index}`;
    const found: Problem[] = [];
    const grows = isNumber(mount["extend_threshold_percent"]) && mount["extend_threshold_percent"] > 0;
    if (grows && !mount["add_size_gb"] && !mount["add_size_percent"]) {
      found.push({ path: `${at}.add_size_gb`, problem: "is required together with extend_threshold_percent" });
    }
    if (mount["size_gb_limit"] && !grows) {
      found.push({ path: `${at}.extend_threshold_percent`, problem: "is required together with size_gb_limit" });
    }
    return found;
  });
}

function services(config: Loose, path: string): Problem[] {
  return objects(config["services"]).flatMap((service, index) => {
    const at = `${path}.services.${index}`;
    const { concurrency } = service;
    const found: Problem[] = [];
    if (isObject(concurrency)) {
      const { soft_limit, hard_limit } = concurrency;
      if (isNumber(soft_limit) && isNumber(hard_limit) && hard_limit > 0 && soft_limit > hard_limit) {
        found.push({ path: `${at}.concurrency.soft_limit`, problem: `must not be above hard_limit (${hard_limit})` });
      }
    }
    return [...found, ...objects(service["ports"]).flatMap((port, i) => portProblems(port, `${at}.ports.${i}`))];
  });
}

function portProblems(port: Loose, at: string): Problem[] {
  const start = port["start_port"];
  const end = port["end_port"] ?? port["end-port"];
  const found: Problem[] = [];
  if (port["port"] !== undefined && (start !== undefined || end !== undefined)) {
    found.push({ path: at, problem: "must have port, or start_port and end_port, not both" });
  } else if ((start === undefined) !== (end === undefined)) {
    found.push({ path: at, problem: "must have both start_port and end_port" });
  } else if (isNumber(start) && isNumber(end) && start > end) {
    found.push({ path: `${at}.start_port`, problem: `must not be above end_port (${end})` });
  }
  return found;
}

function environment(config: Loose, path: string): Problem[] {
  if (!isObject(config["env"])) return [];
  const bad = Object.keys(config["env"]).filter((name) => name === "" || name.includes("=") || name.includes("\0"));
  return bad.map((name) => ({ path: `${path}.env.${name}`, problem: "is not the name of an environment variable" }));
}

function metadata(config: Loose, path: string): Problem[] {
  return isObject(config["metadata"]) ? metadataProblems(config["metadata"], `${path}.metadata`) : [];
}

export function metadataProblems(pairs: Record<string, unknown>, path: string): Problem[] {
  const { metadata_keys, metadata_key_chars, metadata_value_chars } = MACHINE_LIMITS;
  const names = Object.keys(pairs);
  const found: Problem[] = [];
  if (names.length > metadata_keys) {
    found.push({ path, problem: `has more than ${metadata_keys} keys (limit metadata_keys)` });
  }
  for (const name of names) {
    const value = pairs[name];
    if (name === "" || name.length > metadata_key_chars || /\p{Cc}/u.test(name)) {
      found.push({
        path: `${path}.${name.slice(0, 64)}`,
        problem: `is not a key of 1 to ${metadata_key_chars} letters`,
      });
    }
    if (typeof value === "string" && (value.length > metadata_value_chars || value.includes("\0"))) {
      found.push({ path: `${path}.${name}`, problem: `must have at most ${metadata_value_chars} letters, and no NUL` });
    }
  }
  return found;
}

/** Reports what has no effect: unknown keys, and fields that cannot be combined. */
export function configWarnings(config: MachineConfig): string[] {
  const found = [...strangeFields(Config, config, "config"), ...idleFields(Config, config, "config")];
  for (const [name, check] of Object.entries(config.checks ?? {})) {
    const idle = (["method", "path", "protocol", "headers"] as const).filter((key) => check[key] !== undefined);
    if (check.type === "tcp" && idle.length > 0) {
      found.push(`config.checks.${name}: a tcp check makes no use of ${idle.join(", ")}`);
    }
  }
  for (const [index, service] of (config.services ?? []).entries()) {
    found.push(...serviceWarnings(service, `config.services.${index}`));
  }
  if (config.schedule && config.restart?.policy === "always") {
    found.push("config.restart: a scheduled machine that always restarts never waits for its schedule");
  }
  return found;
}

function serviceWarnings({ protocol, autostop, autostart, ports = [] }: ServiceConfig, at: string): string[] {
  const stops = autostop !== undefined && autostop !== false && autostop !== "off";
  const closed =
    protocol === "udp" ? [] : ports.flatMap(({ handlers = [] }, port) => (handlers.length > 0 ? [] : [port]));
  return [
    ...(stops && !autostart ? [`${at}: autostop without autostart: what is stopped stays down`] : []),
    ...closed.map(
      (port) =>
        `${at}.ports.${port} has no handlers, so it stays closed to the internet; handlers: ["tcp"] passes bytes on`,
    ),
  ];
}

export interface Size {
  cpu_kind: "shared" | "performance";
  cpus: number;
  memory_mb: number;
}

const size = (cpu_kind: Size["cpu_kind"], cpus: number, mb_per_cpu: number): Size => ({
  cpu_kind,
  cpus,
  memory_mb: cpus * mb_per_cpu,
});

/** Named machine sizes. */
export const SIZES: Record<string, Size> = Object.fromEntries([
  ...[1, 2, 4, 6, 8].map((cpus) => [`shared-cpu-${cpus}x`, size("shared", cpus, 256)] as const),
  ...[1, 2, 4, 6, 8, 10, 12, 14, 16].map((cpus) => [`performance-${cpus}x`, size("performance", cpus, 2048)] as const),
]);

/** Returns the machine's size with defaults filled in. */
export function sizeOf({ size: named, guest }: Pick<MachineConfig, "size" | "guest">): Size {
  const preset = named === undefined ? undefined : SIZES[named];
  return (
    preset ?? { cpu_kind: guest?.cpu_kind ?? "shared", cpus: guest?.cpus ?? 1, memory_mb: guest?.memory_mb ?? 256 }
  );
}

/** Returns the config as stored: as received, with the full size where it was missing or partial. */
export function complete(config: MachineConfig): MachineConfig {
  return config.size === undefined ? { ...config, guest: { ...sizeOf(config), ...config.guest } } : config;
}

/**
 * Applies a JSON merge patch to the config: unnamed fields stay, null removes. Fails only on problems that the patch
 * adds, because a config accepted by an older version may violate newer rules.
 */
export function mergeConfig(config: MachineConfig, patch: unknown): MachineConfig {
  const wrong = (one: unknown): Problem[] => [
    ...problems(Config, one, "body.config"),
    ...refusedFields(Config, one, "body.config"),
    ...configProblems(one, "body.config"),
  ];
  const merged = mergePatch(config, patch) as MachineConfig;
  const found = wrong(merged);
  const before = found.length === 0 ? [] : wrong(config);
  rejectInvalid(
    found.filter(({ path, problem }) => !before.some((one) => one.path === path && one.problem === problem)),
  );
  return merged;
}

/** RFC 7396. Own keys only, so that no key reaches a prototype. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map<string, unknown>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
