/** The options of a node's HTTP proxy. */
import type { ParseArgsOptionsConfig } from "node:util";
import { parseDuration } from "#core/durations.ts";
import type { ProxyPlace } from "../commands.ts";
import { nodeAddress } from "../flags.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { isDatabaseName } from "../node/database-name.ts";
import { patternOf } from "./rules.ts";

export const PROXY_OPTIONS = {
  "proxy-listen": { type: "string" },
  "proxy-app": { type: "string" },
  "proxy-db": { type: "string" },
  "proxy-local": { type: "string" },
  "proxy-primary": { type: "string" },
  "proxy-queue": { type: "string" },
  "proxy-advertise": { type: "string" },
} as const satisfies ParseArgsOptionsConfig;

export type ProxyFlags = { [name in keyof typeof PROXY_OPTIONS]?: string | undefined };

/** `node_url`: where other nodes reach this one, if that was said: they reach its proxy at the same host. */
export function proxyIn(flags: ProxyFlags, node_url: string | undefined): { proxy?: ProxyPlace } {
  const { "proxy-listen": listen, "proxy-app": app, "proxy-db": db, "proxy-advertise": advertise } = flags;
  if (listen === undefined) {
    const [other] = Object.entries(flags).filter(([name, value]) => name.startsWith("proxy-") && value !== undefined);
    if (other) throw new Error(`--${other[0]} needs --proxy-listen, such as 127.0.0.1:8000`);
    return {};
  }
  const [, host, port] = /^(.*):(\d+)$/.exec(listen) ?? [];
  if (host === undefined) throw new Error(`--proxy-listen is HOST:PORT, not ${JSON.stringify(listen)}`);
  if (app === undefined || db === undefined)
    throw new Error("--proxy-listen needs --proxy-app, the application's address, and --proxy-db, its database");
  if (!isDatabaseName(db)) throw new Error(`--proxy-db: ${JSON.stringify(db)} cannot be the name of a database`);
  const there = advertise ?? (node_url && `http://${new URL(node_url).hostname}:${port}`);
  return {
    proxy: {
      host: host.replace(/^\[|\]$/g, ""),
      port: Number(port),
      app: new URL(nodeAddress("--proxy-app", app)),
      db,
      local: patternsIn(flags["proxy-local"]),
      primary: patternsIn(flags["proxy-primary"]),
      queue_ms: queueIn(flags["proxy-queue"]),
      ...(there === undefined ? {} : { advertise: nodeAddress("--proxy-advertise", there) }),
    },
  };
}

function patternsIn(text: string | undefined): string[] {
  const patterns = (text ?? "").split(",").filter((pattern) => pattern !== "");
  // Throws at what is none, now instead of at the first request.
  for (const pattern of patterns) patternOf(pattern);
  return patterns;
}

function queueIn(text: string | undefined): number {
  const ms = text === undefined ? REPLICATION_LIMITS.proxy_queue_ms : parseDuration(text);
  if (ms !== undefined) return ms;
  throw new Error(`--proxy-queue is a time such as 30s, not ${JSON.stringify(text)}`);
}
