/**
 * From a folder to a URL, for a small app in Node and one in Python: cold, unchanged, and with one line changed; next to
 * `podman build` and `podman run` with the same Dockerfile and the same base image on the same box. Seconds until the URL answers.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { installed, until } from "./processes.ts";
import type { Report } from "./report.ts";

const HANGAR = join(import.meta.dirname, "../bin/hangar.mjs");
const BASE = "bench-base:1";
/** A tar of a root file system with python3 and node, where no Debian mirror is at hand. */
const GIVEN_BASE = process.env["BENCH_BASE_TAR"];
const LOOK_MS = 50;
/** The runtime that we use too; podman's own needs cgroup v2. */
const HOW = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "overlay"];
/** Without these it asks for more than a root without CAP_SYS_RESOURCE can give. */
const LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
const LONGEST_MS = 10 * 60_000;
const CASES = ["cold", "unchanged", "one line changed"] as const;
/** Files that are sent once and never change: what a real folder has beside its code. */
const ASSETS = 50;
const ASSET_BYTES = 64 * 1024;

interface Example {
  port: number;
  file: string;
  code(says: string): string;
  dockerfile: string;
}

const dockerfile = (setup: string, command: string[]): string =>
  `FROM ${BASE}\nWORKDIR /app\nCOPY assets ./assets\nRUN ${setup}\nCOPY . .\nCMD ${JSON.stringify(command)}\n`;

const EXAMPLES: Record<string, Example> = {
  Node: {
    port: 18_311,
    file: "server.js",
    code: (says) => `require("http").createServer((_, answer) => answer.end("${says}")).listen(8080);\n`,
    dockerfile: dockerfile("node -e 'for (let i = 0; i < 3e7; i++);' && cp -r assets prepared", ["node", "server.js"]),
  },
  Python: {
    port: 18_312,
    file: "server.py",
    code: (says) => `import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"${says}")

http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`,
    dockerfile: dockerfile("python3 -m compileall -q /usr/lib/python3 && cp -r assets prepared", [
      "python3",
      "server.py",
    ]),
  },
};

export async function run(report: Report): Promise<void> {
  const missing = ["podman", "buildah", ...(GIVEN_BASE ? [] : ["mmdebstrap"])].filter((name) => !installed(name));
  if (process.getuid?.() !== 0 || missing.length > 0) {
    report.skip("builds", missing.length > 0 ? `${missing.join(", ")} not installed` : "containers need root");
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-builds-"));
  const data = join(dir, "data");
  const server = spawn(HANGAR, ["up", "--data-dir", data, "--listen", "127.0.0.1:0"], { stdio: "ignore" });
  const storage = ["--root", join(dir, "podman"), "--runroot", join(dir, "podman-run"), ...HOW];
  try {
    const base = GIVEN_BASE ?? join(dir, "base.tar");
    if (!GIVEN_BASE)
      await command("mmdebstrap", ["--quiet", "--variant=apt", "--include=python3,nodejs", "bookworm", base]);
    const env = { HANGAR_DATA_DIR: data };
    await until("the platform", () => command(HANGAR, ["auth", "whoami"], { env }));
    await command(HANGAR, ["images", "import", BASE, base], { env });
    await command("podman", [...storage, "import", "-q", base, BASE]);
    for (const [name, example] of Object.entries(EXAMPLES)) {
      const folder = join(dir, name.toLowerCase());
      await compare(report, { name, example, folder, env, storage });
    }
  } finally {
    server.kill();
    await once(server, "exit");
    spawnSync(HANGAR, ["down", "--all", "--data-dir", data]);
    spawnSync("podman", [...storage, "rm", "-af"]);
    spawnSync("podman", [...storage, "system", "reset", "-f"]);
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Compared {
  name: string;
  example: Example;
  folder: string;
  env: Record<string, string>;
  storage: readonly string[];
}

async function compare(report: Report, { name, example, folder, env, storage }: Compared): Promise<void> {
  mkdirSync(join(folder, "assets"), { recursive: true });
  for (let at = 0; at < ASSETS; at++)
    writeFileSync(join(folder, "assets", `${at}.txt`), `${at}\n`.repeat(ASSET_BYTES / 4));
  writeFileSync(join(folder, "Dockerfile"), example.dockerfile);
  writeFileSync(join(folder, ".dockerignore"), "hangar.toml\n");
  writeFileSync(join(folder, "hangar.toml"), appFile(name, example.port));
  let says = "first";
  for (const state of CASES) {
    if (state === "one line changed") says = "second";
    writeFileSync(join(folder, example.file), example.code(says));
    const tag = `localhost/${name.toLowerCase()}:1`;
    const there = example.port + 100;
    const podman = async (): Promise<string> => {
      await command("podman", [...storage, "build", ...LIMITS, "-q", "-t", tag, folder]);
      spawnSync("podman", [...storage, "rm", "-f", "-t", "0", name]);
      return await command("podman", [
        ...storage,
        "run",
        ...LIMITS,
        "-d",
        "--name",
        name,
        "-p",
        `127.0.0.1:${there}:8080`,
        tag,
      ]);
    };
    const hangar = () =>
      command(HANGAR, ["deploy", "--stable-for", "0s", "--strategy", "immediate"], { env, cwd: folder });
    const [peer] = await timed(podman, `http://127.0.0.1:${there}/`, says);
    const [own, output] = await timed(hangar, `http://127.0.0.1:${example.port}/`, says);
    report.section(`${name}: from a folder to a URL`);
    report.add({ what: `podman build, podman run: ${state}`, value: peer, unit: "s" });
    const note = /sent (\d+ files, .*)/.exec(output)?.[1] ?? "";
    report.add({
      what: `hangar deploy: ${state}`,
      value: own,
      unit: "s",
      to: `podman build, podman run: ${state}`,
      note: `sent ${note}`,
    });
  }
}

const appFile = (name: string, port: number): string => `app = "bench-${name.toLowerCase()}"

[[services]]
internal_port = 8080
protocol = "tcp"

[[services.ports]]
port = ${port}
handlers = ["http"]
`;

/** Seconds from the command until the URL gives this answer, and what the command printed. */
async function timed(
  work: () => Promise<string>,
  url: string,
  says: string,
): Promise<[seconds: number, output: string]> {
  const began = performance.now();
  const output = await work();
  while (performance.now() - began < LONGEST_MS) {
    const answer = await fetch(url)
      .then((response) => response.text())
      .catch(() => "");
    if (answer === says) return [(performance.now() - began) / 1000, output];
    await setTimeout(LOOK_MS);
  }
  throw new Error(`${url} does not answer ${says}`);
}

async function command(
  program: string,
  args: readonly string[],
  { env = {}, cwd }: { env?: Record<string, string>; cwd?: string } = {},
): Promise<string> {
  const how = { env: { ...process.env, ...env }, ...(cwd === undefined ? {} : { cwd }) };
  const child = spawn(program, args, { ...how, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close") as Promise<[number]>;
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = await ended;
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr || stdout}`);
  return stdout + stderr;
}
