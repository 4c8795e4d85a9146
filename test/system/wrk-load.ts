/** Load by wrk, a load generator of Debian: what it asked, and every request that did not get a 2xx answer. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { tempDir } from "../support.ts";

export interface LoadResult {
  requests: number;
  /** Answers other than 2xx and 3xx, broken or refused connections, and requests without an answer in time. */
  failed: { status: number; connect: number; read: number; write: number; timeout: number };
  p99_ms: number;
  max_ms: number;
}

export interface LoadOptions {
  host: string;
  /** A new connection for each request. */
  close?: boolean;
  connections?: number;
  /** Each connection waits this long between two requests. */
  pause_ms?: number;
}

export const wrkMissing = (): string | undefined =>
  spawnSync("wrk", ["--version"]).error ? "wrk is not installed (apt-get install wrk)" : undefined;

/** GETs, POSTs with a body, which must not be sent twice, and requests that take a while. */
const script = ({ host, close = false, pause_ms = 5 }: LoadOptions): string => `
local n = 0
local headers = { ["Host"] = "${host}" ${close ? ', ["Connection"] = "close"' : ""} }
function request()
  n = n + 1
  if n % 20 == 0 then return wrk.format("GET", "/slow", headers) end
  if n % 3 == 0 then return wrk.format("POST", "/", headers, "some words") end
  return wrk.format("GET", "/", headers)
end
function delay() return ${pause_ms} end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"failed":{"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d},"p99_ms":%.1f,"max_ms":%.1f}\\n',
    summary.requests, e.status, e.connect, e.read, e.write, e.timeout, latency:percentile(99) / 1000, latency.max / 1000))
end
`;

export interface Load {
  pid: number;
  end(): Promise<LoadResult>;
}

/** Begins at once, and goes on until `end`. */
export function wrkLoad(url: string, options: LoadOptions): Load {
  const dir = tempDir();
  const file = join(dir, "requests.lua");
  writeFileSync(file, script(options));
  const connections = String(options.connections ?? 4);
  const args = ["-t", "1", "-c", connections, "-d", "3600s", "--timeout", "20s", "-s", file, url];
  const child = spawn("wrk", args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return {
    pid: child.pid ?? 0,
    async end() {
      child.kill("SIGINT");
      const [stdout, stderr] = await ended;
      rmSync(dir, { recursive: true, force: true });
      const line = stdout.split("\n").findLast((one) => one.startsWith("{"));
      if (!line) throw new Error(`wrk told nothing: ${stdout}${stderr}`);
      return JSON.parse(line) as LoadResult;
    },
  };
}

export const failures = ({ failed }: LoadResult): number => Object.values(failed).reduce((sum, one) => sum + one, 0);
