/**
 * Asking a thousand machines for their metrics every 15 seconds, next to Prometheus doing the same with the same
 * targets at the same time: whoever else uses this machine disturbs both.
 *
 *     npm run bench scrape      SCRAPE_TARGETS and SCRAPE_SERIES (1000 and 500) make it smaller
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "#proxy/fixtures.ts";
import { read } from "./metrics/engines.ts";
import { peerProgram } from "./metrics/peer-programs.ts";
import { exactCpuSeconds, nextLine, residentBytes } from "./processes.ts";
import type { Report } from "./report.ts";

const TARGETS = Number(process.env["SCRAPE_TARGETS"] ?? 1000);
const SERIES = Number(process.env["SCRAPE_SERIES"] ?? 500);
/** All series are new in the first interval; the second one settles. */
const WARM_UP_MS = 40_000;
const MEASURED_MS = 60_000;

interface Measured {
  name: string;
  /** Of a peer. */
  version?: string;
  child: ChildProcess;
  /** Samples kept so far. */
  appended(): Promise<number>;
}

/** What our server says when it is asked. */
interface Said {
  up: number;
  slowest_ms: number;
  samples: number;
  appended: number;
  behind_ms: number;
}

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-scrape-"));
  const started: ChildProcess[] = [];
  const start = (program: string, args: readonly string[]): ChildProcess => {
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
    started.push(child);
    return child;
  };
  const ours = (file: string, ...args: string[]): ChildProcess =>
    start(process.execPath, [join(import.meta.dirname, file), ...args]);
  try {
    const port = await nextLine(ours("scrape/targets.ts", String(SERIES)));
    const server = ours("scrape/server.ts", join(dir, "hangar"), String(TARGETS), port);
    await nextLine(server);
    const ask = (): Promise<Said> => askServer(server);
    const measured: Measured[] = [{ name: "hangar", child: server, appended: async () => (await ask()).appended }];
    const peer = await peerProgram("prometheus");
    if ("program" in peer) {
      const own = await freePort();
      const child = start(peer.program, prometheus(dir, port, own));
      measured.unshift({ name: "prometheus", version: peer.version, child, appended: () => headSamples(own) });
    } else report.skip("prometheus", peer.reason);
    await sleep(WARM_UP_MS);
    const before = await Promise.all(measured.map(readTotals));
    await sleep(MEASURED_MS);
    reportTotals(report, measured, before, await Promise.all(measured.map(readTotals)));
    tellOurs(report, await ask());
  } finally {
    for (const child of started) child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

interface ScrapeTotals {
  cpu_s: number;
  samples: number;
}

const readTotals = async ({ child, appended }: Measured): Promise<ScrapeTotals> => ({
  samples: await appended(),
  cpu_s: exactCpuSeconds(child),
});

/** By what was kept: one that falls behind must not look thrifty. */
function reportTotals(
  report: Report,
  measured: readonly Measured[],
  before: readonly ScrapeTotals[],
  after: readonly ScrapeTotals[],
): void {
  const spent = measured.map((_, i) => {
    const samples = (after[i]?.samples ?? 0) - (before[i]?.samples ?? 0);
    const cpu_s = (after[i]?.cpu_s ?? 0) - (before[i]?.cpu_s ?? 0);
    return { samples, cpu_s, each_us: (cpu_s / samples) * 1e6 };
  });
  const peer = measured.findIndex(({ name }) => name === "prometheus");
  const beside = (name: string): { to?: string } => (name === "hangar" && peer >= 0 ? { to: "prometheus" } : {});
  report.section(`${TARGETS} targets of ${SERIES} series, every 15 s: processor time of a sample`);
  for (const [i, { name, version }] of measured.entries()) {
    const note = version === undefined ? {} : { note: version };
    const bound = name === "hangar" && peer >= 0 ? { at_most: (spent[peer]?.each_us ?? 0) / 2 } : {};
    report.add({ what: name, value: spent[i]?.each_us ?? 0, unit: "µs", ...beside(name), ...bound, ...note });
  }
  report.section("samples kept in a minute");
  for (const [i, { name }] of measured.entries())
    report.add({ what: name, value: spent[i]?.samples ?? 0, unit: "samples", ...beside(name) });
  report.section("CPU usage");
  for (const [i, { name }] of measured.entries())
    report.add({ what: name, value: ((spent[i]?.cpu_s ?? 0) / MEASURED_MS) * 100_000, unit: "%", ...beside(name) });
  report.section("memory");
  for (const { name, child } of measured)
    report.add({ what: name, value: residentBytes(child) / 2 ** 20, unit: "MiB", ...beside(name) });
}

/** Whether all targets were asked, and in time. */
function tellOurs(report: Report, { up, samples, slowest_ms, behind_ms }: Said): void {
  report.section("on time");
  report.add({ what: "targets up", value: up, unit: "targets", at_least: TARGETS });
  report.add({ what: "samples of the last round", value: samples, unit: "samples", at_least: TARGETS * SERIES });
  report.add({ what: "slowest answer", value: slowest_ms, unit: "ms" });
  report.add({ what: "longest interval of a target", value: behind_ms, unit: "ms", at_most: 17_000 });
}

/** Says a line, and hears one. */
async function askServer(server: ChildProcess): Promise<Said> {
  const line = nextLine(server);
  server.stdin?.write("\n");
  return JSON.parse(await line) as Said;
}

async function headSamples(port: number): Promise<number> {
  const text = await read(`http://127.0.0.1:${port}/metrics`);
  return Number(/^prometheus_tsdb_head_samples_appended_total(?:\{type="float"\})? (\S+)$/m.exec(text)?.[1]);
}

function prometheus(dir: string, port: string, own: number): string[] {
  const targets = Array.from({ length: TARGETS }, (_, i) => `"127.1.${i >> 8}.${i & 255}:${port}"`);
  const config = `global: {scrape_interval: 15s}\nscrape_configs:\n- job_name: bench\n  static_configs:\n  - targets: [${targets.join(",")}]\n`;
  writeFileSync(join(dir, "prometheus.yml"), config);
  return [
    `--config.file=${join(dir, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(dir, "prometheus")}`,
    `--web.listen-address=127.0.0.1:${own}`,
    "--log.level=error",
  ];
}
