import type { MachineConfig } from "#client/api.ts";
import { type Input, listOption, numberOption, textOption, UsageError } from "../verb.ts";

/** Options that set fields of a machine's config; the same for `run` and `update`. */
export const CONFIG_OPTIONS: readonly (readonly [string, string])[] = [
  ["-e, --env <pairs...>", "environment variables, NAME=VALUE"],
  ["-m, --metadata <pairs...>", "metadata, KEY=VALUE"],
  ["--cpus <n>", "cpus (default: 1)"],
  ["--memory <mb>", "memory in MB, a multiple of 256 (default: 256)"],
  ["--size <name>", "a named size, for example shared-cpu-2x"],
  ["--port <ports...>", "publish a port: 80:8080/http, 443:8080/tls,http, 5432/tcp"],
  ["--autostop <what>", "action when idle: off, stop or suspend; a request starts it again"],
  ["-v, --volume <volume:path>", "mount a volume: vol_…:/data"],
  ["--restart <policy>", "no, on-failure or always"],
  ["--schedule <interval>", "hourly, daily, weekly or monthly"],
  ["--standby-for <ids...>", "be a standby of these machines"],
  ["--config <json>", "further config fields, as JSON"],
];

/** The fields of the config that the options set. */
export function configOf(input: Input): Partial<MachineConfig> {
  const env = pairs(listOption(input, "env"));
  const metadata = pairs(listOption(input, "metadata"));
  const ports = listOption(input, "port");
  const volume = textOption(input, "volume");
  const restart = textOption(input, "restart");
  const standbys = listOption(input, "standbyFor");
  return {
    ...json(textOption(input, "config")),
    ...(env ? { env } : {}),
    ...(metadata ? { metadata } : {}),
    ...guest(input),
    ...(ports.length > 0 ? { services: ports.map((port) => service(port, textOption(input, "autostop"))) } : {}),
    ...(volume ? { mounts: [mount(volume)] } : {}),
    ...(restart ? { restart: { policy: restart as "no" } } : {}),
    ...(textOption(input, "schedule") ? { schedule: textOption(input, "schedule") as "daily" } : {}),
    ...(standbys.length > 0 ? { standbys: [...standbys] } : {}),
  };
}

function guest(input: Input): Partial<MachineConfig> {
  const size = textOption(input, "size");
  if (size) return { size };
  const [cpus, memory_mb] = [numberOption(input, "cpus"), numberOption(input, "memory")];
  if (cpus === undefined && memory_mb === undefined) return {};
  return {
    guest: { ...(cpus === undefined ? {} : { cpus }), ...(memory_mb === undefined ? {} : { memory_mb }) },
  };
}

function pairs(list: readonly string[]): Record<string, string> | undefined {
  if (list.length === 0) return undefined;
  return Object.fromEntries(
    list.map((pair): [string, string] => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`${pair} is not NAME=VALUE`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function json(text: string | undefined): Partial<MachineConfig> {
  if (text === undefined) return {};
  try {
    return JSON.parse(text) as Partial<MachineConfig>;
  } catch {
    throw new UsageError(`--config is not JSON: ${text}`);
  }
}

/** `vol_1:/data` is the volume and its mount path. */
function mount(text: string): NonNullable<MachineConfig["mounts"]>[number] {
  const at = text.indexOf(":");
  const [volume, path] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || !path.startsWith("/")) throw new UsageError(`${text} is not a volume and a path such as vol_1:/data`);
  return { volume, path };
}

/** `80:8080/http` is port 80 outside, 8080 inside, with the http handler; one number serves for both. */
function service(text: string, autostop: string | undefined): NonNullable<MachineConfig["services"]>[number] {
  const match = /^(\d+)(?::(\d+))?(?:\/([a-z,]+))?$/.exec(text);
  if (!match) throw new UsageError(`${text} is not a port such as 80:8080/http`);
  const [, outside = "", inside = outside, handlers = "http"] = match;
  const udp = handlers === "udp";
  return {
    protocol: udp ? "udp" : "tcp",
    internal_port: Number(inside),
    ports: [{ port: Number(outside), handlers: udp ? [] : (handlers.split(",") as "http"[]) }],
    ...(autostop ? { autostop: autostop as "stop", autostart: true } : {}),
  };
}
