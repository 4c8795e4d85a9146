/**
 * From a folder to a URL, for a small app in Node and one in Python: cold, unchanged, and with one line changed; next to
 * `podman build` and `podman run` with the same Dockerfile and the same base image on the same box. Seconds until the URL
 * answers, processor time, bytes sent, and requests lost while a running app is replaced.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Engine, Hangar, Podman, writeBase } from "./builds/engines.ts";
import { EXAMPLES, type Example, writeCode, writeExample } from "./builds/examples.ts";
import { lostRequests } from "./builds/lost-requests.ts";
import { installed } from "./processes.ts";
import type { Report } from "./report.ts";

/** A folder where bases are kept from one run to the next; without it they are made from Debian's packages each time. */
const KEPT_BASES = process.env["HANGAR_BENCH_BASES"];
const LOOK_MS = 50;
const LONGEST_MS = 10 * 60_000;
const CASES = ["cold", "warm cache, unchanged", "warm cache, one line changed"] as const;

export async function run(report: Report): Promise<void> {
  const missing = ["podman", "buildah", "mmdebstrap"].filter((name) => !installed(name));
  if (process.getuid?.() !== 0 || missing.length > 0) {
    report.skip("builds", missing.length > 0 ? `${missing.join(", ")} not installed` : "containers need root");
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-builds-"));
  const engines: Engine[] = [];
  try {
    const podman = new Podman(dir);
    engines.push(podman);
    const hangar = await Hangar.open(dir);
    engines.push(hangar);
    for (const example of EXAMPLES) {
      const folder = join(dir, example.name);
      await loadBase(report, example, dir, engines);
      writeExample(folder, example);
      await compare(report, example, folder, engines);
      await lostRequests(report, { example, folder, hangar, podman });
    }
  } finally {
    for (const engine of engines.reverse()) await engine.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function loadBase(report: Report, example: Example, dir: string, engines: readonly Engine[]): Promise<void> {
  const kept = KEPT_BASES ?? dir;
  mkdirSync(kept, { recursive: true });
  const archive = join(kept, `${example.name}.tar`);
  if (!existsSync(archive)) await writeBase(example, archive);
  report.section(`${example.name}: the base image, once`);
  for (const engine of engines) {
    const { seconds, cpu_s } = await metered(engine, () => engine.load(example, archive));
    report.add({
      what: engine instanceof Hangar ? "hangar images import" : "podman load",
      value: seconds,
      unit: "s",
      note: cpuNote(cpu_s),
    });
  }
}

async function compare(report: Report, example: Example, folder: string, engines: readonly Engine[]): Promise<void> {
  report.section(`${example.name}: from a folder to a URL`);
  for (const state of CASES) {
    const says = state === CASES[2] ? "second" : "first";
    writeCode(folder, example, says);
    let peer: Engine | undefined;
    for (const engine of engines) {
      const figures = await deployed(engine, example, { folder, says });
      for (const { what, ...figure } of figures)
        report.add({
          what: `${engine.name}: ${state}${what}`,
          ...figure,
          ...(peer ? { to: `${peer.name}: ${state}${what}` } : {}),
        });
      peer ??= engine;
    }
  }
}

/** Seconds until the URL gives the answer, and processor time. */
async function deployed(engine: Engine, example: Example, { folder, says }: { folder: string; says: string }) {
  let output = "";
  const { seconds, cpu_s } = await metered(engine, async () => {
    output = await engine.deploy(example, folder);
    await answers(engine.url(example), says);
  });
  const sent = /sent (\d+ files?, .*)/.exec(output)?.[1];
  return [
    { what: "", value: seconds, unit: "s", ...(sent ? { note: `sent ${sent}` } : {}) },
    { what: ", CPU", value: cpu_s, unit: "CPU s" },
  ];
}

const cpuNote = (cpu_s: number): string => `${cpu_s.toFixed(1)} s of processor time`;

async function metered(engine: Engine, work: () => Promise<unknown>): Promise<{ seconds: number; cpu_s: number }> {
  const [began, used] = [performance.now(), engine.cpuSeconds()];
  await work();
  return { seconds: (performance.now() - began) / 1000, cpu_s: engine.cpuSeconds() - used };
}

/** Resolves when the URL gives this answer. */
async function answers(url: string, says: string): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < LONGEST_MS) {
    const answer = await fetch(url, { headers: { connection: "close" } })
      .then((response) => response.text())
      .catch(() => "");
    if (answer === says) return;
    await pause(LOOK_MS);
  }
  throw new Error(`${url} does not answer ${says}`);
}
