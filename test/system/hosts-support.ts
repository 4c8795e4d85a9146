/** Several processes on one PostgreSQL: controls, hosts that keep journals, and a caller that does not give up. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "../postgres.ts";
import { PATIENCE_MS, tempDir } from "../support.ts";
import { type Child, startProgram } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

interface HostProcess {
  id: string;
  child: Child;
  journal: string;
  /** The same data dir again, after its process is gone. */
  again(): Promise<void>;
}

export interface Cluster {
  postgres: Awaited<ReturnType<typeof startPostgres>>;
  /** Settings that all its processes share. */
  flags: readonly string[];
  controls: Daemon[];
  hosts: HostProcess[];
}

export interface Machine {
  id: string;
  state: string;
  host: string;
  host_status: string;
}

export const LEASE_S = 2;

export async function startCluster(
  t: Pick<TestContext, "after" | "diagnostic">,
  {
    controls,
    hosts,
    cpus = 5000,
    lease_s = LEASE_S,
  }: {
    controls: number;
    hosts: number;
    cpus?: number;
    lease_s?: number;
  },
): Promise<Cluster> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const database = await postgres.database();
  const flags = ["--database", database, "--host-lease", String(lease_s), "--log-level", "warn"];
  const first = await startDaemon(t, tempDir(), ["--role", "control", ...flags]);
  const cluster: Cluster = {
    postgres,
    flags,
    controls: [first],
    hosts: [],
  };
  // What a process says when it falls over is worth more than that somebody missed it.
  t.after(() => {
    for (const { child } of [...cluster.controls, ...cluster.hosts]) {
      const lines = child.complaints.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
      if (lines.length > 0) t.diagnostic(lines.join("\n"));
    }
  });
  const token = async (): Promise<string> =>
    String((await first.call("POST", "/v1/platform/host_join_tokens")).body["token"]);
  for (let index = 1; index < controls; index++) {
    const join_token = ["--join-token", await token()];
    cluster.controls.push(await startDaemon(t, tempDir(), ["--role", "control", ...flags, ...join_token]));
  }
  for (let index = 0; index < hosts; index++) {
    cluster.hosts.push(await startHost(t, [...flags, "--host-cpus", String(cpus), "--join-token", await token()]));
  }
  return cluster;
}

async function startHost(t: Pick<TestContext, "after">, flags: readonly string[]): Promise<HostProcess> {
  const dir = tempDir();
  const journal = join(dir, "journal");
  const env = { HANGAR_TEST_JOURNAL: journal };
  const args = ["--role", "host", "--driver", "sim", "--data-dir", dir, "--host-memory-mb", "900000", ...flags];
  const start = async (): Promise<{ child: Child; id: string }> => {
    const child = startProgram(t, "test/system/hosts-node.ts", args, env);
    const id = (await child.until(/^ready /)).split(" ")[1] ?? "";
    return { child, id };
  };
  const host: HostProcess = {
    ...(await start()),
    journal,
    async again() {
      host.child = (await start()).child;
    },
  };
  return host;
}

/** An answer that asking again does not change. */
class Refused extends Error {}

/** Looks until it is so; a box that is loaded takes long, so the deadline is generous. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  limit_ms = PATIENCE_MS,
): Promise<T> {
  const began = performance.now();
  for (;;) {
    let problem: unknown;
    const found = await look().catch((thrown: unknown) => {
      if (thrown instanceof Refused) throw thrown;
      problem = thrown;
      return undefined;
    });
    if (found) return found;
    if (performance.now() - began > limit_ms) throw new Error(`it did not come to pass: ${what}`, { cause: problem });
    await delay(50);
  }
}

/** A request that is repeated under the same key until it is answered for good. */
export async function insist(
  daemon: Daemon,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const key = { "idempotency-key": randomUUID() };
  return await until(`${method} ${path}`, async () => {
    const answer = await daemon.call(method, path, body, key);
    if (answer.status < 400) return answer.body;
    if (answer.body["retryable"] === true || answer.status >= 500) return undefined;
    throw new Refused(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  });
}

export async function machinesOf(daemon: Daemon): Promise<Machine[]> {
  const { status, body } = await daemon.call("GET", "/v1/apps/web/machines");
  if (status !== 200) throw new Error(`machines cannot be listed: ${status}`);
  return body as unknown as Machine[];
}

/** The command, on this platform: its exit code, and all that it said. */
export async function hangar(
  t: Pick<TestContext, "after">,
  { base_url, token }: Daemon,
  ...words: string[]
): Promise<{ code: number | null; said: string }> {
  const env = { HANGAR_URL: base_url, HANGAR_TOKEN: token, HANGAR_DATA_DIR: tempDir() };
  const child = startProgram(t, "src/cli/main.ts", words, env);
  const { code } = await child.ended;
  return { code, said: [...child.lines, child.complaints].join("\n") };
}
