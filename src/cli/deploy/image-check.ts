/** The HEALTHCHECK of an image as a check of its machines, where the app file has none. */
import type { MachineConfig } from "#client/api.ts";
import { checkOf as checkConfig } from "../app-file/checks.ts";
import { checkOf } from "../compose/health.ts";

export interface ImageHealthcheck {
  test: readonly string[];
  interval_ms?: number | undefined;
  timeout_ms?: number | undefined;
  start_period_ms?: number | undefined;
}

/** Used where the Dockerfile names no time. */
const DEFAULT_MS = { interval: 5000, timeout: 2000, grace_period: 1000 };

/** Every machine of the group is checked as the image says, unless the config says how. */
export function withImageCheck(
  config: MachineConfig,
  group: string,
  healthcheck: ImageHealthcheck | undefined,
  say: (line: string) => void,
): MachineConfig {
  const [kind, ...words] = healthcheck?.test ?? [];
  if (!healthcheck || kind === "NONE" || hasChecks(config)) return config;
  const command = words.join(" ");
  const check = checkOf(command);
  if (check) return { ...config, checks: { health: checkConfig({ ...timesOf(healthcheck), ...check }) } };
  say(
    `group ${group}: HEALTHCHECK \`${command}\` of its image runs a program; machines are checked over TCP or HTTP: write [checks] into the app file`,
  );
  return config;
}

const hasChecks = ({ checks = {}, services = [] }: MachineConfig): boolean =>
  Object.keys(checks).length > 0 || services.some(({ checks: own = [] }) => own.length > 0);

function timesOf({ interval_ms, timeout_ms, start_period_ms }: ImageHealthcheck): Record<string, string> {
  const times = {
    interval: interval_ms ?? DEFAULT_MS.interval,
    timeout: timeout_ms ?? DEFAULT_MS.timeout,
    grace_period: start_period_ms ?? DEFAULT_MS.grace_period,
  };
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, `${ms}ms`]));
}
