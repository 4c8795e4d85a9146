/** What a short command costs, next to a Node that does nothing and one that sends a single request. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Measured } from "./load/measured.ts";
import { median, type Report } from "./report.ts";

const ROUNDS = 20;
const HANGAR = join(import.meta.dirname, "../bin/hangar.mjs");
const TICKS_PER_SECOND = 100;

interface Cost {
  cpu_ms: number;
  wall_ms: number;
}

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const args = ["--data-dir", join(dir, "data"), "--listen", "127.0.0.1:0", "--driver", "sim"];
  const server = await Measured.start("src/main.ts", args, /^ +API /);
  try {
    const request = join(dir, "request.cjs");
    const url = `http://127.0.0.1:${server.port}/healthz`;
    writeFileSync(request, `require("node:http").get("${url}", (answer) => answer.pipe(process.stdout))`);
    const socket = join(dir, "socket.cjs");
    const text = "GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n";
    const connect = `require("node:net").connect(${server.port}, "127.0.0.1")`;
    writeFileSync(socket, `const line = ${connect}; line.write("${text}"); line.pipe(process.stdout)`);
    const env = { ...process.env, HANGAR_DATA_DIR: join(dir, "data") };
    const subjects: [string, string, string[]][] = [
      ["node -e 0", process.execPath, ["-e", "0"]],
      ["node, one HTTP request", process.execPath, [request]],
      ["node, one request over a socket", process.execPath, [socket]],
      ["hangar machines list", HANGAR, ["machines", "list"]],
    ];
    const costs = measureInTurns(subjects, env);
    for (const part of ["cpu_ms", "wall_ms"] as const) {
      report.section(part === "cpu_ms" ? "processor time of a command" : "time until a command has ended");
      for (const [what] of subjects) {
        const values = (costs.get(what) ?? []).map((cost) => cost[part]);
        // Processor time is told in steps of 10 ms: only the mean of many is finer.
        const value = part === "cpu_ms" ? values.reduce((sum, one) => sum + one, 0) / values.length : median(values);
        report.add({ what, value, unit: "ms", ...(what === "node -e 0" ? {} : { to: "node -e 0" }) });
      }
    }
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** One after the other, so that what else the box does meets all of them alike. The first round fills caches. */
function measureInTurns(subjects: [string, string, string[]][], env: NodeJS.ProcessEnv): Map<string, Cost[]> {
  const costs = new Map<string, Cost[]>(subjects.map(([what]) => [what, []]));
  for (let round = 0; round <= ROUNDS; round++)
    for (const [what, program, args] of subjects) {
      const [began, cpu] = [performance.now(), childrenCpuMs()];
      const { status, stderr } = spawnSync(program, args, { env, encoding: "utf8" });
      if (status !== 0) throw new Error(`${what}: ${stderr}`);
      const cost = { cpu_ms: childrenCpuMs() - cpu, wall_ms: performance.now() - began };
      if (round > 0) costs.get(what)?.push(cost);
    }
  return costs;
}

/** Of all children that have ended: fields 16 and 17 of /proc/self/stat. */
function childrenCpuMs(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[13]) + Number(fields[14])) * 1000) / TICKS_PER_SECOND;
}
