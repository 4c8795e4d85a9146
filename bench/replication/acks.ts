/** What it costs to wait until commits are acknowledged: `GET /wait` after each, on three nodes, one client and many at once. */
import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { freePort } from "#proxy/fixtures.ts";
import { end } from "../processes.ts";
import { quantile, type Report } from "../report.ts";
import { info, start, until } from "./cluster.ts";

const NODES = 3;
const SECONDS = 2;
const CLIENTS = [1, 16];
/** The first is what the others are compared with. */
const MODES = [["none"], ["one"], ["quorum", "--cluster-size", String(NODES)]] as const;

interface Elected {
  port: number;
  path: string;
  nodes: ChildProcess[];
}

/** Nodes that elect their primary, all of which follow it. */
async function elect(base: string, ack: readonly string[]): Promise<Elected> {
  const [nodes, ports]: [ChildProcess[], number[]] = [[], []];
  for (let i = 0; i < NODES; i++) {
    const port = await freePort();
    mkdirSync(join(base, String(i)));
    const args = ["--dir", join(base, String(i)), "--listen", `127.0.0.1:${port}`, "--lease", `sqlite:${base}/lease`];
    nodes.push(start("src/replication/main.ts", ...args, "--ack", ...ack));
    ports.push(port);
  }
  let primary = -1;
  await until(async () => {
    const infos = await Promise.all(ports.map(info));
    primary = infos.findIndex((found) => found?.isPrimary === true && found.replicas.length === NODES - 1);
    return primary >= 0;
  });
  return { port: ports[primary] ?? 0, path: join(base, String(primary), "db"), nodes };
}

/** How long each commit and the answer to the question after it took. */
async function commits({ path, port }: Elected, clients: number): Promise<number[]> {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS waited (pad TEXT)");
  const insert = db.prepare("INSERT INTO waited (pad) VALUES (?)");
  const taken: number[] = [];
  const until_ms = performance.now() + SECONDS * 1000;
  const client = async (): Promise<void> => {
    while (performance.now() < until_ms) {
      const began_ms = performance.now();
      insert.run("x".repeat(200));
      const answer = await fetch(`http://127.0.0.1:${port}/wait?db=db&timeout=30s`);
      await answer.arrayBuffer();
      if (answer.status === 200) taken.push(performance.now() - began_ms);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  db.close();
  return taken;
}

export async function acknowledged(report: Report): Promise<void> {
  report.section(`commits that wait to be acknowledged (GET /wait), ${NODES} nodes`);
  for (const [mode, ...more] of MODES) {
    const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
    const elected = await elect(base, [mode, ...more]);
    try {
      // The first ones wait until replicas are in sync.
      await commits(elected, 1);
      for (const clients of CLIENTS) addMode(report, { mode, clients, ms: await commits(elected, clients) });
    } finally {
      await Promise.all(elected.nodes.map(end));
      rmSync(base, { recursive: true, force: true });
    }
  }
}

function addMode(report: Report, { mode, clients, ms }: { mode: string; clients: number; ms: number[] }): void {
  const add = (what: string, value: number, unit: string): void => {
    const name = (of: string): string => `--ack ${of}, ${clients} at once: ${what}`;
    report.add({ what: name(mode), value, unit, ...(mode === MODES[0][0] ? {} : { to: name(MODES[0][0]) }) });
  };
  add("p50", quantile(ms, 0.5), "ms");
  add("p99", quantile(ms, 0.99), "ms");
  add("commits", ms.length / SECONDS, "commits/s");
}
