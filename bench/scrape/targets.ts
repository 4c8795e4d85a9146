/**
 * A thousand targets in one process: every address of 127.0.0.0/8 is this machine, so each target has one of its own.
 *
 *     node targets.ts SERIES      says its port on the first line
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const series = Number(process.argv[2]);
const STATUSES = ["200", "201", "304", "404", "500"];

/** A page as a program with a client library shows it: counters that move, histograms, gauges, their descriptions. */
function page(round: number): Buffer {
  const lines: string[] = [];
  for (let i = 0; i < series; i++) {
    if (i % 10 === 0) lines.push(`# HELP app_metric_${i / 10} What it counts.`, `# TYPE app_metric_${i / 10} counter`);
    const labels = `method="GET",path="/api/v1/things/${i % 10}",status="${STATUSES[i % 5]}"`;
    lines.push(`app_metric_${Math.floor(i / 10)}{${labels}} ${i * 1000 + round * (i % 7)}`);
  }
  return Buffer.from(`${lines.join("\n")}\n`);
}

const pages = Array.from({ length: 8 }, (_, round) => page(round));
let requests = 0;
const server = createServer((_request, response) => {
  const body = pages[Math.floor(requests++ / 1000) % pages.length];
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4", "content-length": body?.length ?? 0 });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "0.0.0.0", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
