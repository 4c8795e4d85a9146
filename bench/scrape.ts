/**
 * Asking a thousand machines for their metrics every 15 seconds, next to Prometheus doing the same with the same
 * targets at the same time: whoever else uses this machine disturbs both.
 *
 *     npm run bench scrape      SCRAPE_TARGETS and SCRAPE_SERIES (1000 and 500) make it smaller
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { NODE_ENV, whyNot } from "./metrics-engines.ts";
import type { Report } from "./report.ts";

const TARGETS = Number(process.env["SCRAPE_TARGETS"] ?? 1000);
const SERIES = Number(process.env["SCRAPE_SERIES"] ?? 500);
/** All series are new in the first interval; the second one settles. */
const WARM_UP_MS = 40_000;
const MEASURED_MS = 60_000;

interface Measured {
  name: string;
  child: ChildProcess;
  lines?: Interface | undefined;
}

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-scrape-"));
  const started: ChildProcess[] = [];
  const start = (program: string, args: readonly string[]): ChildProcess => {
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "ignore"],
      env: { ...process.env, ...NODE_ENV },
    });
    started.push(child);
    return child;
  };
  try {
    const port = await firstLine(
      start(process.execPath, [join(import.meta.dirname, "scrape-targets.ts"), String(SERIES)]),
    );
    const ours = start(process.execPath, [
      join(import.meta.dirname, "scrape-server.ts"),
      join(dir, "hangar"),
      String(TARGETS),
      port,
    ]);
    const measured: Measured[] = [{ name: "hangar", child: ours, lines: linesOf(ours) }];
    const why = whyNot("prometheus");
    if (why === undefined) measured.unshift({ name: "prometheus", child: start("prometheus", prometheus(dir, port)) });
    else report.skip("prometheus", why);
    await sleep(WARM_UP_MS);
    const before = measured.map(({ child }) => cpuSeconds(child));
    await sleep(MEASURED_MS);
    tell(report, measured, before);
    await tellOurs(report, measured);
  } finally {
    for (const child of started) child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

function tell(report: Report, measured: readonly Measured[], before: readonly number[]): void {
  const cpu = measured.map(({ child }, i) => ((cpuSeconds(child) - (before[i] ?? 0)) / MEASURED_MS) * 100_000);
  const memory = measured.map(({ child }) => residentMib(child));
  const peer = measured.findIndex(({ name }) => name === "prometheus");
  report.section(`${TARGETS} targets of ${SERIES} series, every 15 s: part of one processor`);
  for (const [i, { name }] of measured.entries()) {
    const bound = name === "hangar" && peer >= 0 ? { to: "prometheus", at_most: (cpu[peer] ?? 0) / 2 } : {};
    report.add({ what: name, value: cpu[i] ?? 0, unit: "%", ...bound });
  }
  report.section("memory");
  for (const [i, { name }] of measured.entries()) {
    report.add({
      what: name,
      value: memory[i] ?? 0,
      unit: "MiB",
      ...(name === "hangar" && peer >= 0 ? { to: "prometheus" } : {}),
    });
  }
}

/** Whether all targets were asked, and in time. */
async function tellOurs(report: Report, measured: readonly Measured[]): Promise<void> {
  const ours = measured.find(({ name }) => name === "hangar");
  if (!ours?.lines) return;
  const line = once(ours.lines, "line") as Promise<[string]>;
  ours.child.stdin?.write("\n");
  const said = JSON.parse((await line)[0]) as { up: number; slowest_ms: number; samples: number; behind_ms: number };
  report.section("on time");
  report.add({ what: "targets up", value: said.up, unit: "targets", at_least: TARGETS });
  report.add({ what: "samples of the last round", value: said.samples, unit: "samples", at_least: TARGETS * SERIES });
  report.add({ what: "slowest answer", value: said.slowest_ms, unit: "ms" });
  report.add({ what: "longest since a target was asked", value: said.behind_ms, unit: "ms", at_most: 17_000 });
}

function prometheus(dir: string, port: string): string[] {
  const targets = Array.from({ length: TARGETS }, (_, i) => `"127.1.${i >> 8}.${i & 255}:${port}"`);
  const config = `global: {scrape_interval: 15s}\nscrape_configs:\n- job_name: bench\n  static_configs:\n  - targets: [${targets.join(",")}]\n`;
  writeFileSync(join(dir, "prometheus.yml"), config);
  return [
    `--config.file=${join(dir, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(dir, "prometheus")}`,
    "--web.listen-address=127.0.0.1:0",
    "--log.level=error",
  ];
}

function linesOf(child: ChildProcess): Interface | undefined {
  return child.stdout ? createInterface({ input: child.stdout }) : undefined;
}

async function firstLine(child: ChildProcess): Promise<string> {
  const lines = linesOf(child);
  if (!lines) throw new Error("the program says nothing");
  return ((await once(lines, "line")) as [string])[0];
}

/** User and system time of all threads, in seconds. */
function cpuSeconds({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function residentMib({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}
