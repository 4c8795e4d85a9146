/**
 * A process that opens the metrics of a folder and keeps them open until it is killed:
 *
 *     node metrics-holder.ts DIR      says `open`, or ends with the reason why not
 */
import { systemClock } from "../../src/core/clock.ts";
import { openMetricsEngine } from "../../src/metrics/engine/engine.ts";

try {
  const engine = openMetricsEngine({ dir: process.argv[2] ?? "", clock: systemClock });
  await engine.flush();
  process.stdout.write("open\n");
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
