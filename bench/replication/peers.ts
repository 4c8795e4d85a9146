/** LiteFS and Litestream beside our nodes, built by the Go toolchain where there is one. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#proxy/fixtures.ts";
import { end } from "../processes.ts";

export interface Peer {
  /** With its version. */
  name: string;
  /** Answers the folder in which a database is replicated; undefined, or throws, when it cannot run here. */
  start(program: string, base: string, running: ChildProcess[]): Promise<string>;
  source: Source;
}

interface Source {
  module: string;
  version: string;
  /** The folder of the program in the module. */
  command: string;
}

const BUILD_MS = 600_000;
const START_MS = 15_000;
/** Kept from run to run: the build takes minutes. */
const BUILT = join(tmpdir(), "hangar-bench-go");

/** The program, or why there is none. In a module of its own with the version pinned: nothing else is asked of the proxy. */
export function build({ module, version, command }: Source): { program: string } | { reason: string } {
  const dir = join(BUILT, `${module.replaceAll("/", "_")}@${version}`);
  const program = join(dir, "program");
  if (existsSync(program)) return { program };
  if (spawnSync("go", ["version"]).status !== 0)
    return { reason: "there is no Go toolchain here (apt-get install golang-go)" };
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "go.mod"), `module bench\n\ngo 1.22\n\nrequire ${module} ${version}\n`);
  const env = { ...process.env, GOPATH: join(BUILT, "path"), GOCACHE: join(BUILT, "cache") };
  const args = ["build", "-mod=mod", "-o", program, `${module}/${command}`];
  const { status, stderr } = spawnSync("go", args, { cwd: dir, env, encoding: "utf8", timeout: BUILD_MS });
  if (status === 0) return { program };
  return { reason: `it could not be built: ${stderr.trim().split("\n").at(-1) || "it took too long"}` };
}

async function until(what: string, done: () => boolean): Promise<void> {
  const give_up_ms = performance.now() + START_MS;
  while (!done()) {
    if (performance.now() > give_up_ms) throw new Error(`${what} did not come`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

const run = (running: ChildProcess[], program: string, ...args: string[]): void => {
  running.push(spawn(program, args, { stdio: "ignore" }));
};

/** One that copies to a folder: it has no replica that can be read. */
const litestream: Peer = {
  name: "Litestream 0.3.13, to a folder",
  source: { module: "github.com/benbjohnson/litestream", version: "v0.3.13", command: "cmd/litestream" },
  start(program, base, running) {
    const dir = join(base, "litestream");
    mkdirSync(dir);
    run(running, program, "replicate", join(dir, "db"), `file://${join(base, "litestream-copy")}`);
    return Promise.resolve(dir);
  },
};

const litefs: Peer = {
  name: "LiteFS 0.5.14, one replica",
  source: { module: "github.com/superfly/litefs", version: "v0.5.14", command: "cmd/litefs" },
  async start(program, base, running) {
    const primary = await freePort();
    const mounts: string[] = [];
    for (const [i, port] of [primary, await freePort()].entries()) {
      const dir = join(base, `litefs-${i}`);
      for (const folder of ["mount", "data"]) mkdirSync(join(dir, folder), { recursive: true });
      const config = {
        fuse: { dir: join(dir, "mount") },
        data: { dir: join(dir, "data") },
        http: { addr: `127.0.0.1:${port}` },
        lease: {
          type: "static",
          candidate: i === 0,
          hostname: "primary",
          "advertise-url": `http://127.0.0.1:${primary}`,
        },
      };
      // JSON is YAML.
      writeFileSync(join(dir, "litefs.yml"), JSON.stringify(config));
      run(running, program, "mount", "-config", join(dir, "litefs.yml"));
      await until("the mount", () => spawnSync("mountpoint", ["-q", join(dir, "mount")]).status === 0);
      mounts.push(join(dir, "mount"));
    }
    return mounts[0] ?? "";
  },
};

export const PEERS: readonly Peer[] = [litestream, litefs];

/** Runs `measure` on a database that the peer replicates. Answers why not when that cannot be. */
export async function withPeer(peer: Peer, measure: (path: string) => Promise<void>): Promise<string | undefined> {
  const built = build(peer.source);
  if ("reason" in built) return built.reason;
  const base = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const running: ChildProcess[] = [];
  try {
    await measure(join(await peer.start(built.program, base, running), "db"));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    for (const child of running.reverse()) await end(child);
    for (const i of [0, 1]) spawnSync("umount", ["-l", join(base, `litefs-${i}`, "mount")], { stdio: "ignore" });
    rmSync(base, { recursive: true, force: true });
  }
}
