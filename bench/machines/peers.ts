/**
 * Inspect and list of 200, next to Docker Engine's and Podman's API on the same box, in requests per second of
 * CPU that the answering program spends. Nothing runs in any of them: containers are created, machines rest. All are
 * asked over TCP, which costs whoever answers more than a Unix socket does.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#proxy/fixtures.ts";
import { type Ask, asker } from "../load/ask.ts";
import { Measured } from "../load/measured.ts";
import { cpuSeconds, end, installed, until } from "../processes.ts";

const COUNT = 200;
/** Requests in one go, of which there are as many as a program needs to come to rest. */
const INSPECTS = 5000;
const LISTS = 50;
/** A program that compiles as it runs gets faster for a while: it is warm when a go is no faster than the two before. */
const SETTLED = 1.03;
const MOST_GOES = 12;
/** Connections that stay open, and as many requests under way: what is measured is the answer, not the greeting. */
const CLIENTS = 16;
const root = join(import.meta.dirname, "../..");

export const OURS = "Hangar";
/** Not peers: what a program on Node's own HTTP server cannot pass, and one that reads HTTP off Node's sockets itself. */
export const FLOORS = { "bare node:http": "bench/peers/node-http.ts", "bare node:net": "bench/peers/node-net.ts" };

export interface PeerFigure {
  name: string;
  inspect_per_cpu_s: number;
  list_per_cpu_s: number;
}

async function measure(
  name: string,
  cpu: () => number,
  ask: Ask,
  paths: { inspect(i: number): string; list: string },
): Promise<PeerFigure> {
  const requests = async (count: number, path: (i: number) => string): Promise<void> => {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < count) await ask("GET", path(next++));
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  };
  const rate = async (count: number, path: (i: number) => string): Promise<number> => {
    const goes: number[] = [];
    for (;;) {
      const before = cpu();
      await requests(count, path);
      goes.push(count / Math.max(0.01, cpu() - before));
      const [first = 0, second = 0, last = 0] = goes.slice(-3);
      const settled = goes.length >= 6 && last <= SETTLED * Math.max(first, second);
      // The better of the last ones: what else ran on the box at the time can only have cost something.
      if (settled || goes.length === MOST_GOES) return Math.round(Math.max(first, second, last));
    }
  };
  const inspect_per_cpu_s = await rate(INSPECTS, paths.inspect);
  return { name, inspect_per_cpu_s, list_per_cpu_s: await rate(LISTS, () => paths.list) };
}

async function hangar(dir: string): Promise<PeerFigure[]> {
  const port = await freePort();
  const env = {
    ...process.env,
    HANGAR_DATA_DIR: dir,
    HANGAR_LISTEN: `127.0.0.1:${port}`,
    HANGAR_LOG_LEVEL: "error",
    HANGAR_DRIVER: "sim",
  };
  const child = spawn(process.execPath, ["src/main.ts"], { cwd: root, env, stdio: "ignore" });
  try {
    await until("hangar", () => asker({ port })("GET", "/healthz"));
    const ask = asker({ port }, readFileSync(join(dir, "token"), "utf8").trim());
    await ask("POST", "/v1/apps", { app_name: "bench" });
    const path = "/v1/apps/bench/machines";
    const ids: string[] = [];
    for (let i = 0; i < COUNT; i++) {
      const made = await ask("POST", path, {
        skip_launch: true,
        config: { image: "x", env: { A: "1" }, metadata: { n: String(i) } },
      });
      ids.push((JSON.parse(made) as { id: string }).id);
    }
    const paths = { inspect: (i: number) => `${path}/${ids[i % COUNT]}`, list: path };
    const figure = await measure(OURS, () => cpuSeconds(child), ask, paths);
    const bytes = { inspect: await ask("GET", paths.inspect(0)), list: await ask("GET", paths.list) };
    const floors: PeerFigure[] = [];
    for (const [name, program] of Object.entries(FLOORS)) floors.push(await floor(name, program, dir, bytes));
    return [...floors, figure];
  } finally {
    await end(child);
  }
}

/** The least a server of Node's own can do for the same bytes: no list, no token, no limit, no record of the request. */
async function floor(
  name: string,
  program: string,
  dir: string,
  bytes: { inspect: string; list: string },
): Promise<PeerFigure> {
  const figures: PeerFigure[] = [];
  for (const [what, text] of Object.entries(bytes)) {
    const file = join(dir, what);
    writeFileSync(file, text);
    const server = await Measured.start(program, [file], /^ready /);
    try {
      const paths = { inspect: () => "/", list: "/" };
      figures.push(await measure(name, () => server.cpuSeconds(), asker({ port: server.port }), paths));
    } finally {
      await server.stop();
    }
  }
  const [inspect, list] = figures;
  return {
    name,
    inspect_per_cpu_s: inspect?.inspect_per_cpu_s ?? 0,
    list_per_cpu_s: list?.list_per_cpu_s ?? 0,
  };
}

/** An image of nothing: both engines take a tar with one empty folder. */
function emptyImage(dir: string): string {
  mkdirSync(join(dir, "rootfs/tmp"), { recursive: true });
  const tar = join(dir, "empty.tar");
  execFileSync("tar", ["-C", join(dir, "rootfs"), "-cf", tar, "tmp"]);
  return tar;
}

/** Both engines speak the same API. */
async function measureContainers(name: string, daemon: ChildProcess, ask: Ask, image: string): Promise<PeerFigure> {
  const ids: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    const made = await ask("POST", `/containers/create?name=c${i}`, {
      Image: image,
      Cmd: ["/x"],
      Env: ["A=1"],
      Labels: { n: String(i) },
    });
    ids.push((JSON.parse(made) as { Id: string }).Id);
  }
  const paths = { inspect: (i: number) => `/containers/${ids[i % COUNT]}/json`, list: "/containers/json?all=1" };
  return await measure(name, () => cpuSeconds(daemon), ask, paths);
}

async function docker(dir: string): Promise<PeerFigure[]> {
  const port = await freePort();
  const at = `tcp://127.0.0.1:${port}`;
  const args = [
    "-H",
    at,
    "--tls=false",
    "--data-root",
    join(dir, "root"),
    "--exec-root",
    join(dir, "exec"),
    "-p",
    join(dir, "d.pid"),
  ];
  const plain = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"];
  const child = spawn("dockerd", [...args, ...plain], { stdio: "ignore" });
  try {
    const ask = asker({ port });
    await until("dockerd", () => ask("GET", "/_ping"));
    execFileSync("docker", ["-H", at, "import", emptyImage(dir), "empty:1"], { stdio: "ignore" });
    return [await measureContainers("Docker Engine", child, ask, "empty:1")];
  } finally {
    await end(child);
  }
}

async function podman(dir: string): Promise<PeerFigure[]> {
  const port = await freePort();
  const where = [
    "--root",
    join(dir, "root"),
    "--runroot",
    join(dir, "run"),
    "--tmpdir",
    join(dir, "tmp"),
    "--cgroup-manager",
    "cgroupfs",
    "--storage-driver",
    "vfs",
  ];
  execFileSync("podman", [...where, "import", emptyImage(dir), "empty:1"], { stdio: "ignore" });
  const child = spawn("podman", [...where, "system", "service", "--time=0", `tcp://127.0.0.1:${port}`], {
    stdio: "ignore",
  });
  try {
    const ask = asker({ port });
    await until("podman", () => ask("GET", "/_ping"));
    return [await measureContainers("Podman", child, ask, "localhost/empty:1")];
  } finally {
    await end(child);
  }
}

export async function peers(): Promise<PeerFigure[]> {
  const figures: PeerFigure[] = [];
  const all = [
    { measure: hangar, needs: undefined },
    { measure: docker, needs: "dockerd" },
    { measure: podman, needs: "podman" },
  ];
  for (const { measure: one, needs } of all) {
    if (needs && !installed(needs)) {
      process.stderr.write(`${needs} is not installed; left out\n`);
      continue;
    }
    const dir = mkdtempSync(join(tmpdir(), "hangar-peer-"));
    try {
      figures.push(...(await one(dir)));
    } catch (thrown) {
      process.stderr.write(`${needs ?? "hangar"}: ${String(thrown)}\n`);
    } finally {
      if (existsSync(dir)) rmSync(dir, { recursive: true, force: true });
    }
  }
  return figures;
}

if (import.meta.main) {
  for (const { name, inspect_per_cpu_s, list_per_cpu_s } of await peers()) {
    process.stdout.write(
      `${name.padEnd(14)} inspect ${inspect_per_cpu_s}/CPU s, list of ${COUNT} ${list_per_cpu_s}/CPU s\n`,
    );
  }
}
