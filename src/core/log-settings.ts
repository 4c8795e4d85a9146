/** Settings of logs: the platform's own, and those of the machines of this host. */
import { between, type Given } from "./setting-values.ts";

export const LOG_SETTINGS = {
  log_level: {
    default: "info",
    words: "Level of the log file in the data directory: `debug`, `info`, `warn` or `error`.",
  },
  log_retention_days: {
    default: "7",
    words: "Days for which machines' logs are kept, also those of destroyed machines: 1 to 3650.",
  },
  log_org_mb: {
    default: "1024",
    words: "MiB of compressed logs kept per organization on this host; past it, its oldest are deleted. 1 to 1000000.",
  },
  log_host_mb: {
    default: "10240",
    words:
      "MiB of compressed logs kept on this host; past it, the oldest of the organization with the most are deleted. 1 to 1000000.",
  },
} as const satisfies Record<string, { default: string; words: string }>;

/** How much of the machines' logs is kept on this host. */
export interface KeptLogs {
  ms: number;
  /** Compressed bytes of one organization, and of all. */
  org_bytes: number;
  host_bytes: number;
}

const DAY_MS = 24 * 3600 * 1000;
const MIB = 1024 * 1024;
const MOST_MB = 1_000_000;

export function keptLogs(given: (name: keyof typeof LOG_SETTINGS) => Given): KeptLogs {
  const mb = (name: "log_org_mb" | "log_host_mb"): number => between(given(name), name, 1, MOST_MB) * MIB;
  return {
    ms: between(given("log_retention_days"), "log_retention_days", 1, 3650) * DAY_MS,
    org_bytes: mb("log_org_mb"),
    host_bytes: mb("log_host_mb"),
  };
}

/** The defaults. */
export const KEPT_LOGS = keptLogs((name) => ({ value: LOG_SETTINGS[name].default, from: "default" }));
