/** The edge proxy next to nginx, HAProxy and Caddy: what a request costs, and how much later it is answered. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { freePort } from "#proxy/fixtures.ts";
import { selfSigned } from "#proxy/x509.ts";
import { load } from "./load/measured.ts";
import { cpuSeconds, end, installed, until } from "./processes.ts";
import { median, type Report } from "./report.ts";

const SECONDS = 2;
const WARM_SECONDS = 4;
/** Longer than a box that others use stands still: a late answer is no refusal. */
const TIMEOUT_SECONDS = 30;
/** An odd number: the one in the middle counts. */
const ROUNDS = 11;
/** A request may cost half of what Caddy takes for it. */
const OF_CADDY = 0.5;
const CONNECTIONS = 64;
const ROOT = join(import.meta.dirname, "..");

interface Places {
  dir: string;
  upstream: number;
  /** Plain and TLS. */
  ports: [number, number];
}

interface Peer {
  name: string;
  needs: string;
  command(places: Places): string[];
}

const PEERS: readonly Peer[] = [
  {
    name: "nginx",
    needs: "nginx",
    command: (places) => ["nginx", "-c", write(places, "nginx.conf", nginxProxy(places))],
  },
  {
    name: "haproxy",
    needs: "haproxy",
    command: (places) => ["haproxy", "-f", write(places, "haproxy.cfg", haproxy(places))],
  },
  {
    name: "caddy",
    needs: "caddy",
    command: (places) => [
      "caddy",
      "run",
      "--adapter",
      "caddyfile",
      "--config",
      write(places, "Caddyfile", caddy(places)),
    ],
  },
  {
    // Not a peer: what no proxy on Node's sockets can pass, whatever it does.
    name: "bare node:net, bytes passed on unread",
    needs: "true",
    command: ({ dir, ports, upstream }) => [
      process.execPath,
      join(ROOT, "bench/proxy/pipe.ts"),
      ...[...ports, upstream].map(String),
      join(dir, "cert.pem"),
      join(dir, "key.pem"),
    ],
  },
  {
    name: "hangar",
    needs: "true",
    command: ({ ports, upstream }) => [
      process.execPath,
      join(ROOT, "bench/proxy/plane.ts"),
      ...[...ports, upstream].map(String),
    ],
  },
];

export async function run(report: Report): Promise<void> {
  if (!installed("wrk") || !installed("nginx"))
    return report.skip("the proxy", "wrk or nginx is missing (apt-get install wrk nginx-light)");
  const dir = mkdtempSync(join(tmpdir(), "hangar-proxy-bench-"));
  for (const name of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) mkdirSync(join(dir, name));
  const { chain, key } = selfSigned(["localhost"], systemClock.now());
  writeFileSync(join(dir, "both.pem"), chain + key);
  writeFileSync(join(dir, "cert.pem"), chain);
  writeFileSync(join(dir, "key.pem"), key);
  writeFileSync(join(dir, "large.txt"), "x".repeat(64 * 1024));
  const upstream = await freePort();
  const origin = await start(["nginx", "-c", write({ dir }, "origin.conf", nginxOrigin(dir, upstream))], upstream, "1");
  try {
    await compare(report, { dir, upstream }, { title: "small answers, keep-alive", path: "/", tls: false });
    await compare(report, { dir, upstream }, { title: "small answers, TLS, keep-alive", path: "/", tls: true });
    await compare(report, { dir, upstream }, { title: "64 KiB answers, keep-alive", path: "/large.txt", tls: false });
  } finally {
    await end(origin);
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Case {
  title: string;
  path: string;
  tls: boolean;
}

interface Subject {
  name: string;
  process: ChildProcess;
  url: string;
  /** Of each round, in µs. */
  costs: number[];
}

/** All of them run at once and are asked in turns, so that what else the box does meets each of them alike. */
async function compare(report: Report, at: Omit<Places, "ports">, what: Case): Promise<void> {
  report.section(`${what.title}: ${CONNECTIONS} connections, one core (CPU), then one connection (latency)`);
  const direct = await latency({ name: "the origin", url: `http://127.0.0.1:${at.upstream}${what.path}` });
  report.add({ what: "without a proxy: p50", value: direct.p50_ms, unit: "ms" });
  const subjects: Subject[] = [];
  try {
    for (const peer of PEERS) {
      if (!installed(peer.needs)) report.skip(peer.name, `it is not installed (apt-get install ${peer.needs})`);
      else subjects.push(await subject(peer, at, what));
    }
    for (const one of subjects) await wrk(one, CONNECTIONS, WARM_SECONDS);
    for (let round = 0; round < ROUNDS; round++) for (const one of subjects) one.costs.push(await cost(one));
    const caddy = subjects.find(({ name }) => name === "caddy");
    for (const one of subjects) await reportRow(report, one, direct.p50_ms, one.name === "hangar" ? caddy : undefined);
  } finally {
    for (const one of subjects) await end(one.process);
  }
}

async function subject({ name, command }: Peer, at: Omit<Places, "ports">, { path, tls }: Case): Promise<Subject> {
  const places: Places = { ...at, ports: [await freePort(), await freePort()] };
  const port = places.ports[tls ? 1 : 0];
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}${path}`;
  return { name, process: await start(command(places), port, "0"), url, costs: [] };
}

/** Its figures; with a peer, as a part of that one's. */
async function reportRow(
  report: Report,
  { name, url, costs }: Subject,
  direct_ms: number,
  peer: Subject | undefined,
): Promise<void> {
  const cost = { what: `${name}: CPU per request`, value: median(costs), unit: "µs" };
  report.add({ ...cost, ...(peer ? { to: `${peer.name}: CPU per request` } : {}) });
  if (peer) {
    // A box that others use is fast at one moment and slow at the next: what was measured side by side is compared.
    const parts = costs.map((one, round) => one / (peer.costs[round] ?? Number.NaN));
    report.add({ what: `… of ${peer.name}'s in the same round`, value: median(parts), unit: "×", at_most: OF_CADDY });
  }
  const { p50_ms, p99_ms } = await latency({ name, url });
  const added = { what: `${name}: added p50`, value: Math.max(0, p50_ms - direct_ms), unit: "ms" };
  report.add({ ...added, note: `p99 ${p99_ms.toFixed(2)} ms`, ...(name === "hangar" ? { at_most: 0.5 } : {}) });
}

/** Processor time of one request, in µs. */
async function cost(one: Subject): Promise<number> {
  const before = cpuSeconds(one.process);
  const { requests } = await wrk(one, CONNECTIONS, SECONDS);
  return ((cpuSeconds(one.process) - before) * 1e6) / requests;
}

const wrk = ({ name, url }: Pick<Subject, "name" | "url">, connections: number, seconds: number) =>
  load("wrk", [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    `--timeout=${TIMEOUT_SECONDS}s`,
    `-s${join(import.meta.dirname, "load/report.lua")}`,
    "-HHost: web.localhost",
    url,
  ]).catch((error: unknown) => {
    throw new Error(`${name}: ${messageOf(error)}`);
  });

/** One request after the other: what a proxy adds to the way, without a queue. */
async function latency(of: Pick<Subject, "name" | "url">): Promise<{ p50_ms: number; p99_ms: number }> {
  const rounds = [await wrk(of, 1, 1), await wrk(of, 1, 1), await wrk(of, 1, 1)];
  return { p50_ms: median(rounds.map(({ p50_ms }) => p50_ms)), p99_ms: median(rounds.map(({ p99_ms }) => p99_ms)) };
}

async function start([program = "", ...args]: string[], port: number, core: string): Promise<ChildProcess> {
  const env = { ...process.env, GOMAXPROCS: "1", HOME: tmpdir() };
  const child = spawn("taskset", ["-c", core, program, ...args], { stdio: "ignore", cwd: ROOT, env });
  try {
    await until(`${program} on port ${port}`, async () => {
      const socket = connect({ port, host: "127.0.0.1" });
      await once(socket, "connect").finally(() => socket.destroy());
    });
  } catch (thrown) {
    await end(child);
    throw thrown;
  }
  return child;
}

function write({ dir }: { dir: string }, name: string, text: string): string {
  const file = join(dir, name);
  writeFileSync(file, text);
  return file;
}

const nginxBase = (dir: string, name: string, inside: string): string => `
daemon off; master_process off; worker_processes 1; pid ${dir}/${name}.pid; error_log ${dir}/${name}.err;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; tcp_nodelay on;
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  ${inside}
}`;

const nginxOrigin = (dir: string, port: number): string =>
  nginxBase(
    dir,
    "origin",
    `server { listen 127.0.0.1:${port} backlog=4096; root ${dir};
    location = / { default_type text/plain; return 200 "hello world, this is a small body of about sixty-four bytes....\\n"; } }`,
  );

const nginxProxy = ({ dir, upstream, ports: [plain, tls] }: Places): string =>
  nginxBase(
    dir,
    "proxy-nginx",
    `
  upstream origin { server 127.0.0.1:${upstream}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${plain}; listen 127.0.0.1:${tls} ssl; ssl_certificate ${dir}/cert.pem; ssl_certificate_key ${dir}/key.pem;
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; add_header Via nginx; }
  }`,
  );

const haproxy = ({ dir, upstream, ports: [plain, tls] }: Places): string => `
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  option forwardfor
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  http-reuse always
frontend door
  bind 127.0.0.1:${plain}
  bind 127.0.0.1:${tls} ssl crt ${dir}/both.pem
  default_backend origin
backend origin
  server one 127.0.0.1:${upstream}
`;

const caddy = ({ dir, upstream, ports: [plain, tls] }: Places): string => `{
  admin off
  auto_https off
}
http://:${plain} {
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:${upstream}
}
https://:${tls} {
  bind 127.0.0.1
  tls ${dir}/cert.pem ${dir}/key.pem
  reverse_proxy 127.0.0.1:${upstream}
}
`;
