/** Foreign log servers for tests: started on free ports with their data in a temporary folder, and stopped at the end. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { selfSigned } from "#proxy/x509.ts";
import { tempDir, until } from "../support.ts";

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

const finds = (program: string): boolean => spawnSync("sh", ["-c", 'command -v "$0"', program]).status === 0;

/** A server that can be killed and started again with the same data. */
export interface Server {
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
}

function server(
  t: Pick<TestContext, "after">,
  program: string,
  args: readonly string[],
  ready: () => Promise<boolean>,
): Server {
  let child: ChildProcess | undefined;
  const kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  t.after(() => kill());
  return {
    kill,
    async start() {
      child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
      child.stderr?.resume();
      await until(`${program} is ready`, ready, { limit_ms: 120_000 });
    },
  };
}

const answers = (url: string) => async (): Promise<boolean> => (await fetch(url).catch(() => undefined))?.ok ?? false;

/** rsyslog with GnuTLS as Debian has it; messages are written as they came. */
export async function rsyslog(t: TestContext) {
  const plugins = ["x86_64", "aarch64"].map((cpu) => `/usr/lib/${cpu}-linux-gnu/rsyslog/lmnsd_gtls.so`);
  if (!finds("rsyslogd") || !plugins.some((file) => existsSync(file))) {
    t.skip("there is no rsyslog with rsyslog-gnutls");
    return undefined;
  }
  const dir = tempDir();
  const port = await freePort();
  const { chain, key } = selfSigned(["localhost"], Date.now());
  for (const [name, text] of Object.entries({ "cert.pem": chain, "key.pem": key }))
    writeFileSync(join(dir, name), text);
  mkdirSync(join(dir, "work"));
  const config = join(dir, "rsyslog.conf");
  const out = join(dir, "messages");
  writeFileSync(
    config,
    `global(workDirectory="${join(dir, "work")}" maxMessageSize="64k"
  defaultNetstreamDriver="gtls" defaultNetstreamDriverCAFile="${join(dir, "cert.pem")}"
  defaultNetstreamDriverCertFile="${join(dir, "cert.pem")}" defaultNetstreamDriverKeyFile="${join(dir, "key.pem")}"
  parser.escapeControlCharactersOnReceive="off")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")
input(type="imtcp" port="${port}" address="127.0.0.1")
template(name="parts" type="list") {
  property(name="pri") constant(value="|") property(name="timereported" dateFormat="rfc3339") constant(value="|")
  property(name="hostname") constant(value="|") property(name="app-name") constant(value="|")
  property(name="procid") constant(value="|") property(name="msgid") constant(value="|") property(name="msg")
  constant(value="\\n")
}
action(type="omfile" file="${out}" template="parts")
`,
  );
  const listens = async (): Promise<boolean> => {
    const socket = connect(port, "127.0.0.1");
    const opened = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    return opened;
  };
  const process = server(t, "rsyslogd", ["-n", "-f", config, "-i", join(dir, "pid")], listens);
  await process.start();
  const lines = (): string[] => (existsSync(out) ? readFileSync(out, "utf8").split("\n").slice(0, -1) : []);
  return { ...process, url: `syslog+tls://localhost:${port}`, ca: chain, lines };
}

/** The program that an environment variable names. */
function program(t: TestContext, variable: string, name: string): string | undefined {
  const path = process.env[variable];
  if (path) return path;
  if (finds(name)) return name;
  t.skip(`there is no ${name}: ${variable} names one`);
  return undefined;
}

export async function victoriaLogs(t: TestContext) {
  const path = program(t, "HANGAR_VICTORIA_LOGS", "victoria-logs");
  if (!path) return undefined;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = [`-storageDataPath=${tempDir()}`, `-httpListenAddr=127.0.0.1:${port}`, "-retentionPeriod=10y"];
  const process = server(t, path, args, answers(`${url}/health`));
  await process.start();
  /** Everything that a query finds. */
  const query = async (logsql: string): Promise<Record<string, string>[]> => {
    await fetch(`${url}/internal/force_flush`);
    const response = await fetch(`${url}/select/logsql/query`, {
      method: "POST",
      body: new URLSearchParams({ query: logsql }),
    });
    return (await response.text())
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, string>);
  };
  return { ...process, url, query };
}

/** Loki's own parser of push requests, built from its module: what it read of them, once it has read so many lines. */
export async function lokiParser(t: TestContext) {
  const path = join(tempDir(), "loki-push");
  const source = join(import.meta.dirname, "../loki-push");
  const built = spawnSync("go", ["build", "-buildvcs=false", "-o", path, "."], { cwd: source, encoding: "utf8" });
  if (built.status !== 0) {
    t.skip(`no Go, or no modules: ${built.error?.message ?? built.stderr.slice(0, 200)}`);
    return undefined;
  }
  const child = spawn(path, [], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const said: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => said.push(line));
  const port = await until("it says its port", () => said[0]);
  const entries = (): { labels: string; at: string; line: string }[] =>
    said.slice(1).map((text) => {
      const [labels = "", at = "", line = ""] = JSON.parse(text) as string[];
      return { labels, at, line };
    });
  return { url: `http://127.0.0.1:${port}`, entries };
}

export async function loki(t: TestContext) {
  const path = program(t, "HANGAR_LOKI", "loki");
  if (!path) return undefined;
  const dir = tempDir();
  const [port, grpc] = [await freePort(), await freePort()];
  const config = join(dir, "loki.yaml");
  writeFileSync(
    config,
    `auth_enabled: false
server: { http_listen_address: 127.0.0.1, http_listen_port: ${port}, grpc_listen_address: 127.0.0.1, grpc_listen_port: ${grpc}, log_level: error }
common:
  instance_addr: 127.0.0.1
  path_prefix: ${dir}
  storage: { filesystem: { chunks_directory: ${dir}/chunks, rules_directory: ${dir}/rules } }
  replication_factor: 1
  ring: { kvstore: { store: inmemory } }
schema_config:
  configs: [{ from: 2020-10-24, store: tsdb, object_store: filesystem, schema: v13, index: { prefix: index_, period: 24h } }]
limits_config: { ingestion_rate_mb: 100, ingestion_burst_size_mb: 200, per_stream_rate_limit: 100MB, per_stream_rate_limit_burst: 200MB, max_entries_limit_per_query: 1000000 }
analytics: { reporting_enabled: false }
`,
  );
  const url = `http://127.0.0.1:${port}`;
  const process = server(t, path, [`-config.file=${config}`], answers(`${url}/ready`));
  await process.start();
  /** Entries of a query, oldest first: labels, nanoseconds and line. */
  const query = async (logql: string): Promise<{ labels: Record<string, string>; at: string; line: string }[]> => {
    const search = new URLSearchParams({ query: logql, limit: "1000000", direction: "forward", since: "720h" });
    const response = await fetch(`${url}/loki/api/v1/query_range?${search.toString()}`);
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    const { data } = JSON.parse(text) as {
      data: { result: { stream: Record<string, string>; values: [string, string][] }[] };
    };
    return data.result
      .flatMap(({ stream, values }) => values.map(([at, line]) => ({ labels: stream, at, line })))
      .sort((a, b) => (a.at < b.at ? -1 : 1));
  };
  return { ...process, url, query };
}
