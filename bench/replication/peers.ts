/** LiteFS and Litestream beside our nodes, built by the Go toolchain where there is one. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#proxy/fixtures.ts";
import { end } from "../processes.ts";
import type { Built, Source } from "./go-program.ts";

/** Nodes of somebody's that replicate a database. */
export interface Replicated {
  /** The database, where an application writes to it. */
  path: string;
  primary: ChildProcess;
  replica?: ChildProcess;
  /** The port at which the replica tells of transactions, as ours does. */
  events_port?: number;
  /** The last transaction on each node, the primary's first. */
  positions?(): Promise<number[]>;
  /** Starts another replica. It has nothing, and is sent everything; resolves when it has it. */
  join?(): Promise<void>;
}

export interface Peer {
  /** With its version. */
  name: string;
  /** Throws when it cannot run here. */
  start(program: string, base: string, running: ChildProcess[]): Promise<Replicated>;
  source: Source;
}

const START_MS = 60_000;
/** On a busy box a snapshot takes minutes. */
const SNAPSHOT_MS = 3 * 60_000;

async function until(what: string, done: () => boolean, within_ms = START_MS): Promise<void> {
  const give_up_ms = performance.now() + within_ms;
  while (!done()) {
    if (performance.now() > give_up_ms) throw new Error(`${what} did not come`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

const run = (running: ChildProcess[], program: string, ...args: string[]): ChildProcess => {
  const child = spawn(program, args, { stdio: "ignore" });
  running.push(child);
  return child;
};

/** One that copies to a folder: it has no replica that can be read. */
const litestream: Peer = {
  name: "Litestream 0.3.13, to a folder",
  source: { module: "github.com/benbjohnson/litestream", version: "v0.3.13", command: "cmd/litestream" },
  start(program, base, running) {
    const dir = join(base, "litestream");
    mkdirSync(dir);
    const path = join(dir, "db");
    const primary = run(running, program, "replicate", path, `file://${join(base, "litestream-copy")}`);
    return Promise.resolve({ path, primary });
  },
};

const txidAt = (mount: string): number => {
  try {
    return Number(`0x${readFileSync(join(mount, "db-pos"), "utf8").slice(0, 16)}`);
  } catch {
    return -1;
  }
};

const litefs: Peer = {
  name: "LiteFS 0.5.14, one replica",
  source: { module: "github.com/superfly/litefs", version: "v0.5.14", command: "cmd/litefs" },
  async start(program, base, running) {
    const primary_port = await freePort();
    const mounts: string[] = [];
    const mount = async (port: number): Promise<ChildProcess> => {
      const dir = join(base, `litefs-${mounts.length}`);
      for (const folder of ["mount", "data"]) mkdirSync(join(dir, folder), { recursive: true });
      const config = {
        fuse: { dir: join(dir, "mount") },
        data: { dir: join(dir, "data") },
        http: { addr: `127.0.0.1:${port}` },
        lease: {
          type: "static",
          candidate: mounts.length === 0,
          hostname: "primary",
          "advertise-url": `http://127.0.0.1:${primary_port}`,
        },
      };
      // JSON is YAML.
      writeFileSync(join(dir, "litefs.yml"), JSON.stringify(config));
      const child = run(running, program, "mount", "-config", join(dir, "litefs.yml"));
      await until("the mount", () => spawnSync("mountpoint", ["-q", join(dir, "mount")]).status === 0);
      mounts.push(join(dir, "mount"));
      return child;
    };
    const primary = await mount(primary_port);
    const events_port = await freePort();
    const replica = await mount(events_port);
    return {
      path: join(mounts[0] ?? "", "db"),
      primary,
      replica,
      events_port,
      positions: () => Promise.resolve(mounts.map(txidAt)),
      join: async () => {
        await mount(await freePort());
        const isThere = (): boolean => txidAt(mounts.at(-1) ?? "") === txidAt(mounts[0] ?? "");
        await until("the snapshot", isThere, SNAPSHOT_MS);
      },
    };
  },
};

export const PEERS: readonly Peer[] = [litestream, litefs];

export interface RunningPeer extends Replicated {
  name: string;
  end(): Promise<void>;
}

/** The peer with a database of its own, or why it cannot be. */
export async function startPeer(peer: Peer, built: Built): Promise<RunningPeer | { reason: string }> {
  if ("reason" in built) return built;
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const running: ChildProcess[] = [];
  const endAll = async (): Promise<void> => {
    for (const child of running.toReversed()) await end(child);
    for (const i of running.keys()) {
      spawnSync("umount", ["-l", join(base, `litefs-${i}`, "mount")], { stdio: "ignore" });
    }
    rmSync(base, { recursive: true, force: true });
  };
  try {
    return { ...(await peer.start(built.program, base, running)), name: peer.name, end: endAll };
  } catch (error) {
    await endAll();
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}
