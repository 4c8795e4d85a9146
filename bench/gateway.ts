/** The connector gateway over a machine's socket, next to calling the provider directly and to nginx in between. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Load, load, Measured } from "./load/measured.ts";
import { cpuSeconds, end, installed } from "./processes.ts";
import { median, quantile, type Report } from "./report.ts";

const SECONDS = 3;
const ROUNDS = 3;
const CONNECTIONS = 32;

interface Subject {
  name: string;
  /** A port, or the path of a socket. */
  where: string;
  path: string;
  /** Processor time of what stands in between; nothing does when the provider is called directly. */
  cpuSeconds?: () => number;
}

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const provider = await Measured.start("bench/gateway/provider.ts", [], /^ready/);
  try {
    const platform = await startGateway(join(dir, "data"), provider.port);
    const nginx = await startNginx(report, dir, provider.port);
    try {
      const direct: Subject = { name: "direct", where: String(provider.port), path: "/x" };
      const subjects = [direct, ...(nginx ? [nginx.subject] : []), platform.subject];
      await measureLatency(report, subjects);
      await measureCost(report, subjects);
      await measureStreams(report, subjects);
    } finally {
      await nginx?.stop();
      await platform.stop();
    }
  } finally {
    await provider.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A platform with a simulated machine that has its socket, and a connector to the provider. */
async function startGateway(data_dir: string, port: number): Promise<{ subject: Subject; stop(): Promise<void> }> {
  const args = ["--data-dir", data_dir, "--listen", "127.0.0.1:0", "--driver", "sim", "--gateway-allow-private", "1"];
  const server = await Measured.start("src/main.ts", args, /^ +API /);
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  const call = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  await call("POST", "/v1/apps", { app_name: "bench" });
  const config = { image: "bench:1", env: { SIM_LOCAL_API: "1" }, metadata: { sprite_labels: "prod" } };
  const machine = await call("POST", "/v1/apps/bench/machines", { name: "caller", config });
  await call("GET", `/v1/apps/bench/machines/${String(machine["id"])}/wait`);
  const { connection } = await call("POST", "/v1/oauth/connections/custom_api", {
    name: "provider",
    base_api_url: `http://127.0.0.1:${port}`,
    access_token: "a-token-of-the-benchmark",
    auth_method: "header",
    access_policy: { name_prefix: "call", sprite_labels: ["prod"], blocked_endpoints: ["/admin*"] },
  });
  const { id } = connection as { id: string };
  const where = join(data_dir, "run/api", String(machine["id"]), "api");
  const subject = {
    name: "gateway",
    where,
    path: `/v1/gateway/custom_api/${id}/x`,
    cpuSeconds: () => server.cpuSeconds(),
  };
  return { subject, stop: () => server.stop() };
}

/** The plainest proxy there is, with kept-alive connections to the provider, at a socket of its own. */
async function startNginx(
  report: Report,
  dir: string,
  port: number,
): Promise<{ subject: Subject; stop(): Promise<void> } | undefined> {
  if (!installed("nginx")) {
    report.skip("nginx proxy_pass", "there is no nginx (apt-get install nginx-light)");
    return undefined;
  }
  const socket = join(dir, "nginx.sock");
  const config = join(dir, "nginx.conf");
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${dir}/nginx.pid; error_log ${dir}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${dir}/a; proxy_temp_path ${dir}/b; fastcgi_temp_path ${dir}/c; uwsgi_temp_path ${dir}/d; scgi_temp_path ${dir}/e;
  upstream provider { server 127.0.0.1:${port}; keepalive 64; }
  server {
    listen unix:${socket};
    keepalive_requests 1000000;
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer a-token-of-the-benchmark";
    }
  }
}
`,
  );
  const child = spawn("taskset", ["-c", "0", "nginx", "-c", config, "-p", dir], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  while (!existsSync(socket)) await delay(20);
  const subject = { name: "nginx proxy_pass", where: socket, path: "/x", cpuSeconds: () => cpuSeconds(child) };
  return { subject, stop: () => end(child) };
}

const call = ({ where, path }: Subject, clients: number, seconds: number): Promise<Load> =>
  load(process.execPath, [
    join(import.meta.dirname, "gateway/caller.ts"),
    where,
    path,
    String(clients),
    String(seconds),
  ]);

/** In turns, so that what else the machine does falls on all of them. */
async function measureLatency(report: Report, subjects: readonly Subject[]): Promise<void> {
  report.section("One caller, a kilobyte, over the machine's socket");
  const taken = new Map<string, number[]>();
  for (const subject of subjects) await call(subject, 1, SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const subject of subjects) {
      const { p50_ms } = await call(subject, 1, SECONDS);
      taken.set(subject.name, [...(taken.get(subject.name) ?? []), p50_ms]);
    }
  }
  const p50 = (name: string): number => median(taken.get(name) ?? []);
  for (const { name } of subjects) report.add({ what: `${name}: p50`, value: p50(name), unit: "ms" });
  for (const { name } of subjects.slice(1)) {
    const bound = name === "gateway" ? { at_most: 1 } : {};
    report.add({ what: `${name}: added at p50`, value: p50(name) - p50("direct"), unit: "ms", ...bound });
  }
}

async function measureCost(report: Report, subjects: readonly Subject[]): Promise<void> {
  report.section(`${CONNECTIONS} callers: requests per CPU second of the proxy`);
  for (const subject of subjects) {
    const { name, cpuSeconds } = subject;
    if (!cpuSeconds) continue;
    await call(subject, CONNECTIONS, 1);
    const before = cpuSeconds();
    const { requests, seconds, p99_ms } = await call(subject, CONNECTIONS, SECONDS);
    const peer = name === "gateway" && subjects.length > 2 ? { to: "nginx proxy_pass: per CPU second" } : {};
    report.add({ what: `${name}: per CPU second`, value: requests / (cpuSeconds() - before), unit: "req", ...peer });
    report.add({
      what: `${name}: rate`,
      value: requests / seconds,
      unit: "req/s",
      note: `p99 ${p99_ms.toFixed(1)} ms`,
    });
  }
}

/** How long a piece of a stream is on its way. */
async function measureStreams(report: Report, subjects: readonly Subject[]): Promise<void> {
  report.section("A stream of small pieces: from the provider's write to the caller's read");
  for (const { name, where, path } of subjects) {
    const target = /^\d+$/.test(where) ? { port: Number(where), host: "127.0.0.1" } : { socketPath: where };
    const clientRequest = request({
      ...target,
      path: path.replace(/x$/, "ticks"),
      agent: false,
      headers: { host: "bench" },
    });
    clientRequest.end();
    const [response] = (await once(clientRequest, "response")) as [IncomingMessage];
    const late: number[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const now = process.hrtime.bigint();
      for (const line of chunk.toString().trim().split("\n")) late.push(Number(now - BigInt(line)) / 1e6);
    }
    const note = `p99 ${quantile(late, 0.99).toFixed(2)} ms, ${late.length} pieces`;
    report.add({ what: `${name}: p50 of a piece`, value: median(late), unit: "ms", note });
  }
}
