/**
 * What a running machine takes in the memory of the control process, on the sim driver: the heap after a full garbage
 * collection with a few machines and with many, and the difference by machine; then a query over all of them, and how long
 * the platform takes to stop. `--machines` says how many.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BUILTIN_LIMITS } from "#metrics/builtin/limits.ts";
import { type TestPlatform, testPlatform } from "../test/platform.ts";
import type { Report } from "./report.ts";

const FEW = 200;
const CALLERS = 32;
/** Rounds of metrics after which all machines are in them, on a box with other work. */
const ROUNDS_MOST = 20;
const APP = "web";
const CONFIG = { image: "web:1", env: { A: "1" }, metadata: { role: "web" }, guest: { cpus: 1, memory_mb: 256 } };

export async function run(report: Report): Promise<void> {
  const { values } = parseArgs({ options: { machines: { type: "string" } }, allowPositionals: true, strict: false });
  const many = Number(values.machines ?? 1200);
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await using made = new AsyncDisposableStack();
  const platform = await testPlatform({ after: (end) => made.defer(end as () => Promise<void>) });
  await platform.ask("POST /v1/apps", { body: { app_name: APP, org_slug: "personal" } });
  const few = await heapWith(platform, 0, FEW, collect);
  const all = await heapWith(platform, FEW, many, collect);
  report.section("control process");
  const value = (all - few) / (many - FEW) / 1024;
  report.add({ what: "heap per running machine", value, unit: "KiB", at_most: 10 });
  await stopWith(many, platform, made, report);
}

interface QueryAnswer {
  data: { result: { value?: [number, string] }[] };
}

/** What their metrics say, and how long the end of the platform takes with all of them running. */
async function stopWith(
  many: number,
  { ask }: TestPlatform,
  made: AsyncDisposableStack,
  report: Report,
): Promise<void> {
  report.section(`${many} running machines`);
  const sum = `GET /prometheus/personal/api/v1/query?query=${encodeURIComponent("sum(svc_instance_up)")}`;
  const seen = async (): Promise<number> => {
    const [{ value: [, up] = [0, "0"] } = {}] = ((await ask(sum)).body as QueryAnswer).data.result;
    return Number(up);
  };
  let began = performance.now();
  let up = await seen();
  report.add({ what: "query over the metrics of all, cold", value: performance.now() - began, unit: "ms" });
  // On a busy box a round takes longer than its interval.
  for (let rounds = 0; up < many && rounds < ROUNDS_MOST; rounds++) {
    await delay(BUILTIN_LIMITS.interval_ms);
    up = await seen();
  }
  report.add({ what: "machines that the metrics show as up", value: up, unit: "", at_least: many });
  report.add({
    what: "resident memory with the metrics engine",
    value: process.memoryUsage().rss / 2 ** 20,
    unit: "MiB",
  });
  began = performance.now();
  await made.disposeAsync();
  report.add({ what: "stop of the platform", value: performance.now() - began, unit: "ms", at_most: 10_000 });
}

/** The heap when so many machines run, after two rounds of metrics. */
async function heapWith(platform: TestPlatform, from: number, to: number, collect: () => void): Promise<number> {
  let next = from;
  const create = async (): Promise<void> => {
    for (; next < to; ) {
      next++;
      await platform.ask(`POST /v1/apps/${APP}/machines`, { body: { config: CONFIG } });
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, create));
  const waiting = `GET /v1/apps/${APP}/machines?state=created,starting&limit=1&summary=true`;
  while ((await platform.ask(waiting)).body.length > 0) await delay(100);
  await delay(2 * BUILTIN_LIMITS.interval_ms);
  collect();
  // What the first collection has freed may let go of more.
  await delay(100);
  collect();
  return process.memoryUsage().heapUsed;
}
