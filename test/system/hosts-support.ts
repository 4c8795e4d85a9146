/** Several processes on one PostgreSQL: controls, hosts that keep journals, and a caller that does not give up. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "../postgres.ts";
import { PATIENCE_MS, tempDir } from "../support.ts";
import { type Child, startProgram } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { readJournal, type Span, spansOf } from "./hosts-history.ts";

interface HostProcess {
  id: string;
  child: Child;
  journal: string;
  /** The same data dir again, after its process is gone. */
  again(): Promise<void>;
}

export interface Cluster {
  /** Settings that all its processes share. */
  flags: readonly string[];
  controls: Daemon[];
  hosts: HostProcess[];
  restartDatabase(): Promise<void>;
  database: Pick<Awaited<ReturnType<typeof startPostgres>>, "crash" | "start">;
  /** When each machine could run where, by all journals. */
  history(): Span[];
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
    unfenced = 0,
    broken = "HANGAR_TEST_UNFENCED",
    cpus = 5000,
  }: {
    controls: number;
    hosts: number;
    /** So many hosts are broken on purpose, and how. */
    unfenced?: number;
    broken?: "HANGAR_TEST_UNFENCED" | "HANGAR_TEST_EXEMPT";
    cpus?: number;
  },
): Promise<Cluster> {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const database = await postgres.database();
  const flags = ["--database", database, "--host-lease", String(LEASE_S), "--log-level", "warn"];
  const first = await startDaemon(t, tempDir(), ["--role", "control", ...flags]);
  const cluster: Cluster = {
    flags,
    controls: [first],
    hosts: [],
    restartDatabase: () => postgres.restart(),
    database: postgres,
    history: () => cluster.hosts.flatMap(({ id, journal }) => spansOf(id, readJournal(journal))),
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
    cluster.hosts.push(
      await startHost(
        t,
        [...flags, "--host-cpus", String(cpus), "--join-token", await token()],
        index < unfenced ? broken : "",
      ),
    );
  }
  return cluster;
}

async function startHost(
  t: Pick<TestContext, "after">,
  flags: readonly string[],
  broken: string,
): Promise<HostProcess> {
  const dir = tempDir();
  const journal = join(dir, "journal");
  const env = { HANGAR_TEST_JOURNAL: journal, ...(broken ? { [broken]: "1" } : {}) };
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

const MOVABLE = { image: "web:1", metadata: { hangar_on_host_loss: "move" }, guest: { cpus: 1, memory_mb: 256 } };

export async function fill({ controls }: Cluster, count: number, config: object = MOVABLE): Promise<string[]> {
  const made = Array.from({ length: count }, async (_, index) => {
    const control = controls[index % controls.length] ?? assert.fail();
    return String((await insist(control, "POST", "/v1/apps/web/machines", { config }))["id"]);
  });
  return await Promise.all(made);
}

/** Everything that was acknowledged runs, on a host that is there, and every control says so. */
export async function allRun(cluster: Cluster, ids: readonly string[], what: string): Promise<void> {
  for (const control of cluster.controls) {
    let missing: object[] = [];
    const look = async (): Promise<boolean> => {
      const machines = new Map((await machinesOf(control)).map((machine) => [machine.id, machine]));
      missing = ids.flatMap((id) => {
        const machine = machines.get(id);
        return machine?.state === "started" && machine.host_status === "ok" ? [] : [machine ?? { id }];
      });
      return missing.length === 0;
    };
    await until(what, look).catch((cause: unknown) => {
      throw new Error(`${what}, except ${JSON.stringify(missing)}`, { cause });
    });
  }
}

export async function hostState({ controls: [control] }: Cluster, id: string): Promise<string> {
  const { body } = (await control?.call("GET", `/v1/platform/hosts/${id}`)) ?? assert.fail();
  return String(body["state"]);
}
