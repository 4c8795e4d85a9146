/**
 * A process that opens the metrics of a folder and keeps them open until it is killed:
 *
 *     node metrics-holder.ts DIR      says `open`, or ends with the reason why not
 */
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { openMetricsEngine } from "#metrics/engine/engine.ts";

try {
  const engine = openMetricsEngine({ dir: process.argv[2] ?? "", clock: systemClock });
  await engine.flush();
  process.stdout.write("open\n");
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
}
