/**
 * Real machines next to other engines, in one run: from the request to the running process, stopping, 200 at once,
 * what an idle one costs in memory, and suspend and resume. The image, its command and the limits are the same for
 * all, with seccomp on, and a network where the engine has one. One is started after the other, engine by engine in
 * turn, so that whatever else the box does falls on all of them alike.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "#core/assert.ts";
import { installed } from "./processes.ts";
import { median, quantile, type Report } from "./report.ts";
import { type Engine, type Ground, processesOf, pssKb } from "./runtime/engine.ts";
import { type Hangar, openHangar } from "./runtime/hangar.ts";
import { PEERS } from "./runtime/peers.ts";
import { sealedResume } from "./runtime/sealed.ts";
import { type SuspendKind, suspendAndResume } from "./runtime/suspend.ts";

/** `HANGAR_BENCH_RUNS=5 HANGAR_BENCH_MACHINES=20` for a look instead of a measurement. */
const RUNS = Number(process.env["HANGAR_BENCH_RUNS"] ?? 25);
const MACHINES = Number(process.env["HANGAR_BENCH_MACHINES"] ?? 200);
/** `HANGAR_BENCH_PART=memory` measures only what an idle machine costs here: three minutes instead of twenty; `suspend` and `sealed` only those. */
const PART = process.env["HANGAR_BENCH_PART"];
const SUSPENDS = Math.min(RUNS, 10);
const LISTS = 7;
/** The pause before a stop, so that the shell has set its traps. */
const SETTLE_MS = 150;
/** Without work, before memory is looked at. */
const IDLE_MS = 15_000;

const BARE = "bare runc";
const p95 = (values: readonly number[]): number => quantile(values, 0.95);

export async function run(report: Report): Promise<void> {
  if (process.getuid?.() !== 0) return report.skip("real machines", "it needs root");
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-runtime-"));
  const engines: Engine[] = [];
  try {
    const { rootfs, tar } = makeImage(dir);
    const hangar = await openHangar(groundOf(dir, "hangar", rootfs, tar));
    engines.push(hangar);
    if (PART === "memory") return await many(report, engines);
    const bothKinds = async (): Promise<void> => {
      await suspends(report, hangar, "snapshot", 200);
      await sealedResume(report, hangar, SUSPENDS);
      const freezing = await openHangar(groundOf(dir, "freezing", rootfs, tar), ["--suspend", "freeze"]);
      engines.push(freezing);
      await suspends(report, freezing, "freeze", 50);
    };
    if (PART === "sealed") return await sealedResume(report, hangar, SUSPENDS);
    if (PART === "suspend") return await bothKinds();
    report.section("engines");
    engines.push(...(await openPeers(report, dir, rootfs, tar)));
    await starts(report, engines);
    divided(report, hangar);
    await many(report, engines);
    await bothKinds();
  } finally {
    for (const engine of engines) {
      await engine.close().catch((thrown: unknown) => report.skip(`closing ${engine.name}`, messageOf(thrown)));
    }
    spawnSync("sh", ["-c", `for m in $(grep -o '${dir}[^ ]*' /proc/mounts | sort -r); do umount -l "$m"; done`]);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A root file system with busybox in it, as a folder and as a tar. */
function makeImage(dir: string): { rootfs: string; tar: string } {
  const rootfs = join(dir, "rootfs");
  for (const folder of ["bin", "dev", "proc", "sys", "tmp", "etc"])
    mkdirSync(join(rootfs, folder), { recursive: true });
  cpSync("/bin/busybox", join(rootfs, "bin/busybox"));
  for (const name of ["sh", "sleep", "ls", "cat"]) symlinkSync("busybox", join(rootfs, "bin", name));
  const tar = join(dir, "rootfs.tar");
  execFileSync("tar", ["-C", rootfs, "-cf", tar, "."]);
  return { rootfs, tar };
}

function groundOf(dir: string, name: string, rootfs: string, tar: string): Ground {
  const own = join(dir, name.replaceAll(" ", "-"));
  mkdirSync(own, { recursive: true });
  return { dir: own, rootfs, tar };
}

/** Every peer that can run a machine here; the others are told of, with the reason. */
async function openPeers(report: Report, dir: string, rootfs: string, tar: string): Promise<Engine[]> {
  const engines: Engine[] = [];
  for (const peer of PEERS) {
    const missing = peer.needs.filter((name) => !installed(name));
    if (missing.length > 0) {
      report.skip(peer.name, `${missing.join(" and ")} is not installed`);
      continue;
    }
    try {
      const engine = await peer.open(groundOf(dir, peer.name, rootfs, tar));
      engines.push(engine);
      await engine.start("probe");
      await pause(SETTLE_MS);
      await engine.stop("probe");
      await engine.remove("probe");
      report.add({ what: engine.name, value: 1, unit: "engine", ...(engine.note ? { note: engine.note } : {}) });
    } catch (thrown) {
      const failed = engines.findIndex(({ name }) => name === peer.name);
      if (failed >= 0) await engines.splice(failed, 1)[0]?.close();
      report.skip(peer.name, messageOf(thrown));
    }
  }
  return engines;
}

/** Bare runc first, so that the others can be shown as multiples of it. */
const ordered = (engines: readonly Engine[]): Engine[] =>
  engines.toSorted((a, b) => Number(b.name === BARE) - Number(a.name === BARE));

type Taken = Map<string, { start: number[]; stop: number[] }>;

async function starts(report: Report, engines: readonly Engine[]): Promise<void> {
  const taken: Taken = new Map(engines.map(({ name }) => [name, { start: [], stop: [] }]));
  // The first two warm up what warms up.
  for (let i = -2; i < RUNS; i++) {
    for (const engine of engines) {
      const { start, stop } = await once(engine, `b${i + 2}`);
      const own = i < 0 ? undefined : taken.get(engine.name);
      own?.start.push(start);
      own?.stop.push(stop);
    }
  }
  for (const part of ["start", "stop"] as const) {
    report.section(part === "start" ? "request to running process" : "stop: signal to ended process");
    for (const { name } of ordered(engines)) {
      const values = taken.get(name)?.[part] ?? [];
      const to = comparable(name, taken);
      const note = `p95 ${Math.round(p95(values))}, least ${Math.round(Math.min(...values))}`;
      report.add({ what: `${name}, p50`, value: median(values), unit: "ms", ...to, note });
    }
  }
  targets(report, engines, taken);
}

const comparable = (name: string, taken: Taken): { to?: string } =>
  name !== BARE && taken.has(BARE) ? { to: `${BARE}, p50` } : {};

/** One life: how long it took to start and to stop. */
async function once(engine: Engine, id: string): Promise<{ start: number; stop: number }> {
  const began = performance.now();
  await engine.start(id);
  const start = performance.now() - began;
  await pause(SETTLE_MS);
  const stopping = performance.now();
  await engine.stop(id);
  const stop = performance.now() - stopping;
  await engine.remove(id);
  return { start, stop };
}

function targets(report: Report, engines: readonly Engine[], taken: Taken): void {
  const typical = (name: string): number => median(taken.get(name)?.start ?? []);
  report.section("targets of a start");
  const ours = typical("Hangar");
  if (taken.has(BARE)) report.add({ what: "Hangar ÷ bare runc", value: ours / typical(BARE), unit: "×", at_most: 2 });
  const others = engines.filter(isEngine).map(({ name }) => typical(name));
  if (others.length === 0) return;
  report.add({ what: "Hangar ÷ the fastest other engine", value: ours / Math.min(...others), unit: "×", at_most: 1 });
}

/** What keeps machines, not what only starts a process. */
const isEngine = ({ name }: Engine): boolean => name !== "Hangar" && !name.startsWith("bare ");

/** How the time of one start divides inside the driver. */
function divided(report: Report, hangar: Hangar): void {
  report.section("steps of a start (inside the driver, median)");
  const all = hangar.timings();
  for (const step of new Set(all.flatMap((laps) => Object.keys(laps)))) {
    report.add({ what: step, value: median(all.map((laps) => laps[step] ?? 0)), unit: "ms" });
  }
}

async function many(report: Report, engines: readonly Engine[]): Promise<void> {
  for (const engine of ordered(engines)) {
    report.section(`${MACHINES} running: ${engine.name}`);
    // At rest before as well as after, or what grew is not what the machines cost.
    await pause(IDLE_MS);
    const before = engine.daemons().reduce((sum, pid) => sum + pssKb(pid), 0);
    const names = Array.from({ length: MACHINES }, (_, i) => `m${i}`);
    const began = performance.now();
    let made = 0;
    try {
      for (const name of names) {
        await engine.start(name);
        made++;
      }
      report.add({ what: "created, one after the other", value: (performance.now() - began) / 1000, unit: "s" });
      report.add({ what: "list, p50", value: await listed(engine), unit: "ms" });
      // What an idle machine costs shows when the work of making it is over and swept up, in every engine.
      await pause(IDLE_MS);
      memory(report, engine, before);
    } catch (thrown) {
      report.skip(`${MACHINES} machines`, `after ${made}: ${messageOf(thrown)}`);
    }
    for (const name of names.slice(0, made)) {
      await engine.stop(name).catch(() => {});
      await engine.remove(name).catch(() => {});
    }
  }
}

async function listed(engine: Engine): Promise<number> {
  const taken: number[] = [];
  for (let i = 0; i < LISTS; i++) {
    const began = performance.now();
    await engine.list();
    taken.push(performance.now() - began);
  }
  return median(taken);
}

function memory(report: Report, engine: Engine, before: number): void {
  if (engine.shims.length === 0) return;
  const shims = processesOf(engine.shims, engine.mark).reduce((sum, pid) => sum + pssKb(pid), 0);
  const daemons = engine.daemons().reduce((sum, pid) => sum + pssKb(pid), 0);
  const each = { shim: shims / MACHINES / 1000, daemon: Math.max(0, daemons - before) / MACHINES / 1000 };
  report.add({ what: "memory of a shim (PSS)", value: each.shim, unit: "MB" });
  report.add({ what: "growth of the daemon per machine (PSS)", value: each.daemon, unit: "MB" });
  const target = engine.name === "Hangar" ? { at_most: 0.5 } : {};
  report.add({ what: "both together, per idle machine", value: each.shim + each.daemon, unit: "MB", ...target });
}

const HOW: Record<SuspendKind, string> = {
  snapshot: "CRIU writes its memory to the disk",
  freeze: "its cgroup is frozen",
};

/** A Node server that has answered once, suspended and resumed. */
async function suspends(report: Report, hangar: Hangar, kind: SuspendKind, at_most: number): Promise<void> {
  const isFirst = kind === "snapshot";
  report.section(`suspend and resume of an idle Node server (hangar/hello)${isFirst ? "" : `, ${HOW[kind]}`}`);
  const id = await hangar.create("sleeper", "hangar/hello");
  const taken = { suspend: [] as number[], resume: [] as number[] };
  for (let i = 0; i < SUSPENDS; i++) {
    const round = await suspendAndResume(hangar, id, kind);
    if ("refused" in round) return report.skip(`suspend by ${kind}`, round.refused);
    taken.suspend.push(round.suspend);
    taken.resume.push(round.resume);
  }
  await hangar.remove("sleeper");
  report.add({
    what: "suspend, p50",
    value: median(taken.suspend),
    unit: "ms",
    note: `p95 ${Math.round(p95(taken.suspend))}`,
  });
  report.add({
    what: "resume, p50",
    value: median(taken.resume),
    unit: "ms",
    at_most,
    note: `p95 ${Math.round(p95(taken.resume))}`,
  });
}
