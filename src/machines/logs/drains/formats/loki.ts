/** Grafana Loki's push API in JSON: lines by stream, which is a set of labels. */
import type { DrainLine } from "../types.ts";
import { nanosOfStamp } from "./stamp.ts";

export function lokiBody(lines: readonly DrainLine[]): string {
  const streams = Map.groupBy(lines, ({ machine, stream }) => `${machine.id} ${stream}`);
  return JSON.stringify({
    streams: [...streams.values()].map((own) => ({
      stream: labelsOf(own[0] as DrainLine),
      values: own.map(({ stamp, message }) => [nanosOfStamp(stamp), message]),
    })),
  });
}

const labelsOf = ({ stream, machine }: DrainLine) => ({
  app: machine.app_name,
  machine: machine.name,
  machine_id: machine.id,
  region: machine.region,
  stream,
});
