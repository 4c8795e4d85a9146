/**
 * The scraper and the engine alone, as the benchmark's peer is: asks so many targets and keeps what they show.
 *
 *     node server.ts DIR TARGETS PORT      says a line of JSON for each line it reads
 */
import { createInterface } from "node:readline";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import type { MeasuredMachine } from "../../src/metrics/builtin/sources.ts";
import { openMetricsEngine } from "../../src/metrics/engine/engine.ts";
import { Scraper } from "../../src/metrics/scrape/scraper.ts";

const [dir = "", count = "0", port = "0"] = process.argv.slice(2);
const engine = openMetricsEngine({ dir, clock: systemClock });
const scraper = new Scraper({
  clock: systemClock,
  log: silentLog,
  engine: () => engine,
  reach: (machine, to) => ({ host: machine.private_ip, port: to }),
});

/** Fifty machines to an app, so that none has more series than an app may have. */
function machineOf(i: number): MeasuredMachine {
  return {
    id: `m${i}`,
    org_id: "bench",
    app_id: "a",
    app: `app-${Math.floor(i / 50)}`,
    region: "local",
    host: "0001",
    instance: `i${i}`,
    private_ip: `127.1.${i >> 8}.${i & 255}`,
    private_ipv4: null,
    boot: "b",
    handle: null,
    started_at: 0,
    cpus: 1,
    cpu_kind: "shared",
    memory_mb: 256,
    serves: false,
    metrics: { port: Number(port), path: "/metrics" },
  };
}

for (let i = 0; i < Number(count); i++) scraper.started(machineOf(i));
const printFigures = async (): Promise<void> => {
  const targets = scraper.targets("bench");
  const up = targets.filter(({ health }) => health === "up").length;
  const slowest_ms = Math.max(...targets.map(({ last_duration_ms }) => last_duration_ms));
  const samples = targets.reduce((sum, target) => sum + target.samples, 0);
  const oldest = Math.min(...targets.map(({ last_scrape_ms }) => last_scrape_ms ?? 0));
  const { storage } = await engine.status("bench");
  const figures = {
    up,
    slowest_ms,
    samples,
    appended: storage.samples_appended,
    behind_ms: systemClock.now() - oldest,
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
};
createInterface({ input: process.stdin }).on("line", () => void printFigures());
process.on("SIGTERM", () => void scraper.close().then(() => process.exit(0)));
process.stdout.write("ready\n");
