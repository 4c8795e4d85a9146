/**
 * The logs of machines next to VictoriaLogs, and to plain files of zstd with grep, on the same lines with the same times:
 * bytes on disk, lines kept per CPU second, and the CPU and time of queries.
 *
 *     npm run bench logs      LOGS_MB (144) makes it smaller; HANGAR_VICTORIA_LOGS names the program
 *
 * Ours are written by machines' monitors, rotated and compressed, as on a host. VictoriaLogs has them from requests, of
 * which only its own side is counted, and not what a shipper would take to read and send them.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { layoutOf } from "../src/drivers/runtime/runc/layout.ts";
import { nanosOf } from "../src/drivers/runtime/runc/logs/parse.ts";
import { DiskLogQueue } from "../src/drivers/runtime/runc/logs/queue.ts";
import { type Asking, Hangar, VictoriaLogs, victoriaProgram, ZstdFiles } from "./logs/engines.ts";
import { portions } from "./logs/lines.ts";
import { type KeptLine, type Query, queriesOf } from "./logs/queries.ts";
import { installed } from "./processes.ts";
import { median, type Report } from "./report.ts";

const BYTES = Number(process.env["LOGS_MB"] ?? 144) * 1e6;
const MACHINES = 6;
const PORTION = 128 * 1024;
/** A machine writes less than a file between two looks, as at 2 s between them. */
const PORTIONS_PER_LOOK = 12;
const REPEATS = 7;

export async function run(report: Report): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-logs-"));
  const engines: Asking[] = [];
  const place = (name: string): string => {
    mkdirSync(join(dir, name));
    return join(dir, name);
  };
  try {
    const hangar = await Hangar.start(place("hangar"), MACHINES);
    engines.push(hangar);
    const { lines, bytes, cpu } = await ingest(hangar, join(dir, "hangar"));
    report.section(`${lines.length.toLocaleString("en")} lines, ${Math.round(bytes / 1e6)} MB`);
    const ours = { cpu_s: cpu.monitors + cpu.keeper, bytes: await hangar.do({ do: "bytes", ids: [...hangar.ids] }) };
    const program = victoriaProgram();
    if (program === undefined) report.skip("VictoriaLogs", "not at hand: HANGAR_VICTORIA_LOGS names the program");
    else {
      const victoria = await VictoriaLogs.start(program, place("victoria"));
      engines.unshift(victoria);
      add(report, victoria, { cpu_s: await victoria.load(lines), bytes: await victoria.bytes() }, bytes);
    }
    if (installed("zstd")) {
      const files = new ZstdFiles(place("zstd"));
      engines.unshift(files);
      add(report, files, { cpu_s: await files.load(lines), bytes: await files.bytes() }, bytes);
    } else report.skip("zstd and grep", "not installed");
    const to = program === undefined ? undefined : "VictoriaLogs";
    const shares = `monitors ${cpu.monitors.toFixed(2)} s, rotation and compression ${cpu.keeper.toFixed(2)} s`;
    add(report, hangar, ours, bytes, { ...(to ? { to } : {}), note: shares });
    for (const query of queriesOf(lines)) await compare(report, engines, query);
    report.skip("a regular expression", "hangar searches text, fields and levels");
  } finally {
    for (const engine of engines) await engine.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Writes through the monitors; all lines as they were kept, and what that took. */
async function ingest(hangar: Hangar, dir: string) {
  const sources = hangar.ids.map((_, machine) => portions(machine, BYTES / MACHINES, PORTION));
  const began = hangar.cpu();
  let [written, bytes, ended] = [0, 0, 0];
  for (let round = 1; ended < sources.length; round++) {
    ended = 0;
    for (const [machine, source] of sources.entries()) {
      const { value, done } = source.next();
      if (done) ended++;
      else {
        await hangar.write(machine, value);
        written += value.length;
        bytes += value.reduce((sum, line) => sum + line.length + 1, 0);
      }
    }
    if (round % PORTIONS_PER_LOOK === 0) await hangar.do({ do: "look" });
  }
  const monitors = hangar.monitorsCpu();
  await hangar.endWriters();
  await hangar.do({ do: "settle" });
  const lines = await keptLines(hangar.ids, dir);
  if (lines.length !== written) throw new Error(`${lines.length} of ${written} lines were kept`);
  return { lines, bytes, cpu: { monitors, keeper: hangar.cpu() - began } };
}

async function keptLines(ids: readonly string[], dir: string): Promise<KeptLine[]> {
  const queue = new DiskLogQueue({ ...layoutOf(dir, "0000"), containers: join(dir, "m") }, (file, error) => {
    throw new Error(`${file} is damaged`, { cause: error });
  });
  const kept: KeptLine[] = [];
  for (const machine of ids) {
    for (let from: { position: string } | { since: number } = { since: 0 }; ; ) {
      const { lines, position, is_end } = await queue.read(machine, from);
      for (const { stamp, message } of lines) kept.push({ machine, at: nanosOf(stamp), message });
      if (is_end) break;
      from = { position };
    }
  }
  return kept.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

interface Loaded {
  cpu_s: number;
  bytes: number;
}

function add(report: Report, { name, version }: Asking, { cpu_s, bytes }: Loaded, text: number, more: object = {}) {
  const { to, note } = more as { to?: string; note?: string };
  const bound = (what: string) => (to ? { to: `${to}: ${what}` } : {});
  const [disk, kept] = ["bytes on disk, of 100 of text", "kept"];
  report.add({ what: `${name}: ${disk}`, value: (100 * bytes) / text, unit: "B", ...bound(disk), note: version });
  const shares = note ? `${version}; ${note}` : version;
  report.add({ what: `${name}: ${kept}`, value: text / 1e6 / cpu_s, unit: "MB/CPU s", ...bound(kept), note: shares });
}

/** In turn, so that whoever else uses this machine disturbs all alike. All must find the same. */
async function compare(report: Report, engines: readonly Asking[], query: Query): Promise<void> {
  const runs = new Map(engines.map((engine) => [engine, [] as Answered[]]));
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const [engine, own] of runs) {
      const began = performance.now();
      const answer = await engine.ask(query);
      if (answer) own.push({ ...answer, ms: performance.now() - began });
      else runs.delete(engine);
    }
  }
  const found = [...runs].map(([{ name }, own]) => `${name} ${own[0]?.lines}`);
  const counts = new Set([...runs.values()].flatMap((own) => own.map(({ lines }) => lines)));
  if (counts.size > 1) throw new Error(`${query.what}: lines found differ: ${found.join(", ")}`);
  const [count = 0] = counts;
  report.section(`query: ${query.what} (${count.toLocaleString("en")} lines)`);
  const peer = engines.find(({ name }) => name === "VictoriaLogs");
  for (const [what, unit, pick] of FIGURES) {
    for (const [{ name, version }, own] of runs) {
      const to = peer && name === "hangar" ? { to: `${peer.name}${what}` } : {};
      report.add({ what: `${name}${what}`, value: median(own.map(pick)), unit, ...to, note: version });
    }
  }
}

interface Answered {
  lines: number;
  cpu_s: number;
  ms: number;
}

const FIGURES: [what: string, unit: string, pick: (run: Answered) => number][] = [
  [": CPU", "CPU ms", ({ cpu_s }) => cpu_s * 1000],
  [": time", "ms", ({ ms }) => ms],
];
