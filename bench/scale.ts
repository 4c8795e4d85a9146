/**
 * Many machines on one PostgreSQL, on 20 simulated hosts: what a page, a start of the platform and its end cost as the
 * number of machines doubles, then create, start, stop, lists and events mixed. Sizes by flag:
 *
 *   npm run bench scale -- --machines 100000 --hosts 20 --seconds 600
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { postgresMissing, startPostgres } from "../test/postgres.ts";
import { random, tempDir } from "../test/support.ts";
import { type Daemon, startDaemon } from "../test/system/daemon.ts";
import { median, quantile, type Report } from "./report.ts";
import { fillMachines } from "./scale/fill.ts";
import { mixedLoad } from "./scale/mix.ts";

export interface ScaleSizes {
  machines: number;
  hosts: number;
  seconds: number;
}

const CALLERS = 16;
const PAGES = 20;
const LIST = "/v1/apps/web/machines?limit=100";

export async function run(report: Report): Promise<void> {
  const missing = postgresMissing();
  if (missing) return report.skip("many machines", missing);
  const sizes = { machines: { type: "string" }, hosts: { type: "string" }, seconds: { type: "string" } } as const;
  const { values } = parseArgs({ options: sizes, allowPositionals: true, strict: false });
  const number = (value: unknown, otherwise: number): number => Number(value ?? otherwise);
  await measureScale(report, {
    machines: number(values.machines, 100_000),
    hosts: number(values.hosts, 20),
    seconds: number(values.seconds, 600),
  });
}

/** Measures at a quarter, half and all of the machines, then the mixed load. Answers what failed. */
export async function measureScale(report: Report, { machines, hosts, seconds }: ScaleSizes): Promise<string[]> {
  await using made = new AsyncDisposableStack();
  const t = { after: (end: () => unknown) => made.defer(async () => void (await end())) };
  const postgres = await startPostgres({ fsync: true });
  made.defer(() => postgres.stop());
  const url = await postgres.database();
  const dir = tempDir("hangar-scale");
  const file = join(dir, "hangar.toml");
  writeFileSync(file, Array.from({ length: hosts }, (_, i) => hostTable(i)).join("\n"));
  const start = (): Promise<Daemon> =>
    startDaemon(t as never, dir, ["--database", url, "--log-level", "error"], { HANGAR_CONFIG: file });
  let daemon = await start();
  const template = await makeTemplate(daemon);
  let filled = 0;
  const found: AtRest[] = [];
  for (const size of [machines / 4, machines / 2, machines].map(Math.floor)) {
    await stop(daemon);
    await fillMachines(url, template, filled, size);
    filled = size;
    const began = performance.now();
    daemon = await start();
    found.push(await atSize(report, { size, ready_ms: performance.now() - began }, daemon));
  }
  addGrowth(report, found);
  return await mixed(report, daemon, { machines, hosts, seconds });
}

const hostTable = (index: number): string =>
  `[[hosts]]\nid = "${(index + 1).toString(16).padStart(4, "0")}"\nregion = "local"\ncpus = 100000\nmemory_mb = 100000000\n`;

async function makeTemplate(daemon: Daemon): Promise<string> {
  await daemon.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
  const body = { config: { image: "web:1", metadata: { role: "filled" } }, skip_launch: true };
  const answer = await daemon.call("POST", "/v1/apps/web/machines", body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return String(answer.body["id"]);
}

async function stop(daemon: Daemon): Promise<number> {
  const began = performance.now();
  daemon.child.signal("SIGTERM");
  await daemon.child.ended;
  return performance.now() - began;
}

/** What other load on the box does not change, of a process with so many machines at rest. */
interface AtRest {
  size: number;
  start_cpu_ms: number;
  page_cpu_ms: number;
  resident_mib: number;
}

/** What each doubling of the machines multiplies: 1 is nothing, 2 is in proportion. */
function addGrowth(report: Report, found: readonly AtRest[]): void {
  report.section("growth per doubling of the machines at rest");
  const kinds = {
    start_cpu_ms: "processor time of a start",
    page_cpu_ms: "of a page",
    resident_mib: "resident memory",
  };
  for (const [index, { size, ...after }] of found.entries()) {
    const before = found[index - 1];
    if (!before) continue;
    for (const [kind, what] of Object.entries(kinds) as [keyof typeof kinds, string][])
      report.add({ what: `${what}, ${before.size} to ${size}`, value: after[kind] / before[kind], unit: "×" });
  }
}

async function atSize(
  report: Report,
  { size, ready_ms }: { size: number; ready_ms: number },
  daemon: Daemon,
): Promise<AtRest> {
  report.section(`${size} machines at rest`);
  const { pid } = daemon.child;
  const start_cpu_ms = cpuMs(pid);
  report.add({ what: `start to ready at ${size} machines`, value: ready_ms, unit: "ms" });
  report.add({ what: `processor time of that at ${size} machines`, value: start_cpu_ms, unit: "ms" });
  const before = cpuMs(pid);
  const { pages, last } = await readPages(daemon);
  const page_cpu_ms = (cpuMs(pid) - before) / PAGES;
  report.add({ what: `processor time of a page at ${size} machines`, value: page_cpu_ms, unit: "ms" });
  report.add({ what: `first ${PAGES} pages of 100 at ${size} machines, p50`, value: median(pages), unit: "ms" });
  const far = await timed(daemon, `${LIST}&cursor=${await cursorFar(daemon, last)}`);
  report.add({ what: `a page in the second half at ${size} machines, p50`, value: far, unit: "ms" });
  const resident_mib = residentMib(pid);
  report.add({ what: `resident memory at ${size} machines`, value: resident_mib, unit: "MiB" });
  return { size, start_cpu_ms, page_cpu_ms, resident_mib };
}

async function readPages(daemon: Daemon): Promise<{ pages: number[]; last: string }> {
  const pages: number[] = [];
  let last = "";
  for (let page = 0; page < PAGES; page++) {
    const began = performance.now();
    const { headers } = await daemon.call("GET", last === "" ? LIST : `${LIST}&cursor=${last}`);
    pages.push(performance.now() - began);
    last = headers.get("svc-next-cursor") ?? last;
  }
  return { pages, last };
}

/** A cursor near the end: the key of the last machine, moved back a little in time. */
async function cursorFar(daemon: Daemon, known: string): Promise<string> {
  const newest = await daemon.call("GET", "/v1/orgs/personal/machines?limit=1");
  assert.equal(newest.status, 200);
  if (known === "") return known;
  const [list, created_at] = JSON.parse(Buffer.from(known, "base64url").toString()) as [string, number, string];
  return Buffer.from(JSON.stringify([list, created_at + 10 * PAGES * 100, ""])).toString("base64url");
}

async function timed(daemon: Daemon, path: string): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < PAGES; i++) {
    const began = performance.now();
    const answer = await daemon.call("GET", path);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    took.push(performance.now() - began);
  }
  return median(took);
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

const TICK_MS = 10;

/** Processor time of a process, which other load on the box does not change. */
function cpuMs(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}

/** How many there are, with the first as an example. */
const counted = ([first, ...others]: readonly string[]) =>
  first === undefined ? { value: 0, unit: "" } : { value: others.length + 1, unit: "", note: first.slice(0, 200) };

async function mixed(report: Report, daemon: Daemon, { machines, hosts, seconds }: ScaleSizes): Promise<string[]> {
  report.section(`mixed load for ${seconds} s: ${machines} machines, ${hosts} hosts, ${CALLERS} callers`);
  const before = cpuMs(daemon.child.pid);
  const { took, refused, failures } = await mixedLoad(daemon, { callers: CALLERS, seconds, seed: random(29) });
  const all = [...took.values()].reduce((sum, { length }) => sum + length, 0);
  report.add({ what: "requests", value: all / seconds, unit: "/s" });
  report.add({ what: "processor time per request", value: (cpuMs(daemon.child.pid) - before) / all, unit: "ms" });
  for (const [name, values] of took) {
    // A short run on a busy box may not come to all of them.
    if (values.length === 0) continue;
    report.add({ what: `${name}, p50`, value: median(values), unit: "ms" });
    report.add({ what: `${name}, p99`, value: quantile(values, 0.99), unit: "ms" });
  }
  report.add({ what: "requests refused with 429 or 503", ...counted(refused) });
  report.add({ what: "requests that failed", ...counted(failures) });
  report.add({ what: "resident memory afterwards", value: residentMib(daemon.child.pid), unit: "MiB" });
  report.add({ what: "SIGTERM to the end", value: await stop(daemon), unit: "ms", at_most: 10_000 });
  return failures;
}
