/**
 * Control processes, hosts and a PostgreSQL pair, and between each process and the database links of its own that can be
 * cut. Every process has a wall clock that can be put forward and back, and a small disk.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Relay, startRelay } from "../relay.ts";
import { tempDir } from "../support.ts";
import type { Child } from "../system/child.ts";
import { startProgram } from "../system/child.ts";
import { type Daemon, startDaemon } from "../system/daemon.ts";
import { readJournal, type Span, spansOf } from "../system/hosts-history.ts";
import { PostgresPair } from "./postgres-pair.ts";

/** A lease that processes can hold: where others use the box too, they wait for the processor, and a short one is no fault. */
export const LEASE_S = Math.max(2, Math.ceil((loadavg()[0] ?? 0) / availableParallelism() / 4));
/** Enough for a server's files and its log, and soon full. */
const DATABASE_MB = 224;
const PROCESS_MB = 24;
/** Log lines of each process that a failed test shows. */
const LOGGED = 6;

/** Moves the wall clock of a process, and leaves the one that counts alone. */
export const [clockLibrary] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");

export interface Node {
  name: string;
  child: Child;
  links: readonly Relay[];
  /** A disk of its own, with its data dir. */
  disk: string;
  /** Puts its wall clock off by so many seconds. */
  setClock(offset_s: number): void;
  /** The same data dir again, after its process is gone. */
  again(): Promise<void>;
}

export interface ControlNode extends Node {
  call: Daemon["call"];
  base_url: string;
}

export interface HostNode extends Node {
  id: string;
  journal: string;
}

export interface FaultCluster {
  controls: ControlNode[];
  hosts: HostNode[];
  database: PostgresPair;
  /** When each machine could run where, by all journals. */
  spans(): Span[];
}

/** What is broken on purpose: environment of one process. */
export interface Broken {
  control?: NodeJS.ProcessEnv;
  host?: NodeJS.ProcessEnv;
}

export async function startFaultCluster(
  t: TestContext,
  { controls, hosts, broken = {} }: { controls: number; hosts: number; broken?: Broken },
): Promise<FaultCluster> {
  const dir = tempDir();
  // The database runs as a user of its own, and must get to its disk.
  chmodSync(dir, 0o711);
  const database = new PostgresPair([disk(join(dir, "pg-a"), DATABASE_MB), disk(join(dir, "pg-b"), DATABASE_MB)]);
  t.after(() => database.stop());
  await database.start();
  const cluster: FaultCluster = {
    controls: [],
    hosts: [],
    database,
    spans: () => cluster.hosts.flatMap(({ id, journal }) => spansOf(id, readJournal(journal))),
  };
  t.after(() => {
    // What a process says when it falls over is worth more than that somebody missed it.
    for (const { name, child } of [...cluster.controls, ...cluster.hosts]) {
      const lines = child.complaints.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
      if (lines.length > 0) t.diagnostic(`${name}: ${lines.slice(0, 20).join("\n")}`);
      // What a process logged last says more than that nothing came of it.
      if (!(t as TestContext & { passed: boolean }).passed)
        t.diagnostic(`${name} logged last: ${child.complaints.trimEnd().split("\n").slice(-LOGGED).join("\n")}`);
    }
  });
  const token = async (): Promise<string[]> => {
    const [first] = cluster.controls;
    if (!first) return [];
    return ["--join-token", String((await first.call("POST", "/v1/platform/host_join_tokens")).body["token"])];
  };
  for (let at = 0; at < controls; at++)
    cluster.controls.push(
      await startControl(t, { at, dir, database, token: await token(), env: at === 0 ? broken.control : {} }),
    );
  for (let at = 0; at < hosts; at++)
    cluster.hosts.push(
      await startHost(t, { at, dir, database, token: await token(), env: at === 0 ? broken.host : {} }),
    );
  return cluster;
}

interface Start {
  at: number;
  dir: string;
  database: PostgresPair;
  token: readonly string[];
  env: NodeJS.ProcessEnv | undefined;
}

/** What controls and hosts have in common: links, a clock, a disk, and the settings that say so. */
async function surroundings(
  t: TestContext,
  name: string,
  { dir, database, env }: Start,
): Promise<Pick<Node, "name" | "links" | "disk" | "setClock"> & { flags: string[]; env: NodeJS.ProcessEnv }> {
  const links = await Promise.all(database.sockets.map((socket) => startRelay(socket)));
  for (const link of links) t.after(() => link.close());
  const addresses = links.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const url = `postgres://hangar@${addresses}${database.path}?target_session_attrs=read-write`;
  const clock = join(dir, `${name}.clock`);
  const setClock = (offset_s: number): void => writeFileSync(clock, `${offset_s < 0 ? "" : "+"}${offset_s}\n`);
  setClock(0);
  const clocked = {
    LD_PRELOAD: clockLibrary,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_CACHE_DURATION: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  return {
    name,
    links,
    disk: disk(join(dir, name), PROCESS_MB),
    setClock,
    flags: ["--database", url, "--host-lease", String(LEASE_S), "--log-level", "warn"],
    env: { ...(clockLibrary ? clocked : {}), ...env },
  };
}

async function startControl(t: TestContext, start: Start): Promise<ControlNode> {
  const { flags, env, ...around } = await surroundings(t, `control ${start.at + 1}`, start);
  const launch = (more: readonly string[] = []): Promise<Daemon> =>
    startDaemon(t, join(around.disk, "data"), ["--role", "control", ...flags, ...more], env);
  let daemon = await launch(start.token);
  return {
    ...around,
    get child() {
      return daemon.child;
    },
    get base_url() {
      return daemon.base_url;
    },
    call: (...args) => daemon.call(...args),
    async again() {
      daemon = await launch();
    },
  };
}

async function startHost(t: TestContext, start: Start): Promise<HostNode> {
  const { flags, env, ...around } = await surroundings(t, `host ${start.at + 1}`, start);
  // Beside its disk: what it says it did is to be known also when that is full.
  const journal = join(start.dir, `${around.name}.journal`);
  const size = ["--host-cpus", "5000", "--host-memory-mb", "900000"];
  const args = ["--role", "host", "--driver", "sim", "--data-dir", join(around.disk, "data"), ...size, ...flags];
  const launch = async (more: readonly string[] = []): Promise<{ child: Child; id: string }> => {
    const journalled = { ...env, HANGAR_TEST_JOURNAL: journal };
    const child = startProgram(t, "test/system/hosts-node.ts", [...args, ...more], journalled);
    return { child, id: (await child.until(/^ready /)).split(" ")[1] ?? "" };
  };
  const host: HostNode = {
    ...around,
    ...(await launch(start.token)),
    journal,
    async again() {
      host.child = (await launch()).child;
    },
  };
  return host;
}

/** A small file system in memory; it goes with the mount namespace of the test. */
function disk(path: string, mb: number): string {
  mkdirSync(path, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mb}m,mode=0755`, "tmpfs", path]);
  // Before the folder it is in is removed, which is at the end of the process too.
  process.prependOnceListener("exit", () => execFileSync("umount", ["--lazy", path]));
  return path;
}
