/** What tests share: a temp folder that is removed, a seed that is printed, a child that is always reaped. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

const made: string[] = [];

/**
 * A folder of the test's own, removed when the process ends: hooks after a test run in the order in which they were
 * asked for, so a folder that one of them removed would go from under what was opened in it and is closed later.
 */
export function tempDir(label = "hangar-test"): string {
  if (made.length === 0)
    process.once("exit", () => {
      for (const dir of made) rmSync(dir, { recursive: true, force: true });
    });
  const dir = mkdtempSync(join(tmpdir(), `${label}-`));
  made.push(dir);
  return dir;
}

/**
 * The seed of this run, printed so that a failure can be repeated with `SEED=n`. The same at every push, so that a
 * change is judged by what it changed; another one at every `npm run prove`, which is there to find what is new.
 */
export function seed(t: Pick<TestContext, "diagnostic">): number {
  const fresh = process.env["HANGAR_PROVE"] ? Math.floor(Math.random() * 2 ** 31) : 20_261_115;
  const value = Number(process.env["SEED"] ?? fresh);
  t.diagnostic(`SEED=${value}`);
  return value;
}

/** A small generator with a seed (mulberry32), for tests that need many cheap choices. */
export function random(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** How often a random test repeats: at every push, and in the tiers of `npm run prove`. */
export function runs(push: number, night = push * 10, soak = night * 10): number {
  const tier = process.env["HANGAR_PROVE"];
  // Once for each of a thousand changes of the code: what a tenth does not notice the whole hardly ever does.
  if (process.env["HANGAR_MUTATE"]) return Math.ceil(push / 10);
  if (!tier) return push;
  return tier === "soak" ? soak : night;
}

/**
 * How long a test waits for what must come to pass. Far more than anything takes on a box where everything else wants to
 * run too: how fast something is belongs to the benchmarks, and a test that is sure of nothing but the time fails one day.
 */
export const PATIENCE_MS = 120_000;

/**
 * A promise about time: `npm run prove` holds it to the letter, on a box that does nothing else. At a push only what
 * hangs is found, since others use the box, too.
 */
export const within = (ms: number): number => (process.env["HANGAR_PROVE"] ? ms : Math.max(ms, PATIENCE_MS));

/** Milliseconds of this process's own work since `before`, which are the same on a busy box. */
export function workSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** What `look` finds as soon as it finds something, or that it is so; fails in these words when it never is. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  { every_ms = 10, limit_ms = PATIENCE_MS } = {},
): Promise<T> {
  const deadline = performance.now() + limit_ms;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    assert.ok(performance.now() < deadline, `it did not come to pass in ${limit_ms / 1000} s: ${what}`);
    await delay(every_ms);
  }
}

/** Runs a bash script to its end. In another process, so that it can talk to a platform in this one. */
export async function shell(
  script: string,
  { cwd, ...env }: Record<string, string>,
): Promise<{ status: number; stdout: string; stderr: string }> {
  const child = spawn("bash", ["-c", script], {
    ...(cwd ? { cwd } : {}),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = (await exited) as [number | null];
  return { status: status ?? -1, stdout, stderr };
}

/** A folder of the test with these files. */
export function folderOf(files: Record<string, string>): string {
  const folder = tempDir();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}
