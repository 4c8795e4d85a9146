/** OTLP logs in protobuf: an ExportLogsServiceRequest with one resource per machine. */
import { type Level, readMessage } from "#core/log-line.ts";
import { type Field, fixed64, integer, message, readFields, text } from "#core/protobuf.ts";
import { VERSION } from "#core/version.ts";
import type { DrainLine, DrainMachine } from "../types.ts";
import { nanosOfStamp } from "./stamp.ts";

/** Severity numbers of the data model. */
const SEVERITIES: Record<Level, number> = { debug: 5, info: 9, warn: 13, error: 17 };

export function otlpBody(lines: readonly DrainLine[]): Buffer {
  const machines = [...Map.groupBy(lines, ({ machine }) => machine.id).values()];
  return Buffer.concat(machines.flatMap((own) => message(1, ...resourceLogs(own))));
}

function resourceLogs(own: readonly DrainLine[]): Field[] {
  const scope = message(1, text(1, "hangar"), text(2, VERSION));
  return [
    message(1, ...resourceOf((own[0] as DrainLine).machine)),
    message(2, scope, ...own.map((line) => message(2, ...logRecord(line)))),
  ];
}

const resourceOf = ({ id, name, app_name, region }: DrainMachine): Field[] => [
  attribute(1, "service.name", app_name),
  attribute(1, "service.instance.id", id),
  attribute(1, "host.id", id),
  attribute(1, "host.name", name),
  attribute(1, "cloud.region", region),
];

function logRecord({ stamp, stream, message: line }: DrainLine): Field[] {
  const { level, request_id } = readMessage(line);
  const time = BigInt(nanosOfStamp(stamp));
  return [
    fixed64(1, time),
    ...(level === undefined ? [] : [integer(2, SEVERITIES[level]), text(3, level.toUpperCase())]),
    // An empty line is an empty value, not an absent one.
    message(5, line === "" ? [Buffer.from([0x0a, 0])] : text(1, line)),
    attribute(6, "log.iostream", stream),
    ...(request_id === undefined ? [] : [attribute(6, "request_id", request_id)]),
    fixed64(11, time),
  ];
}

const attribute = (number: number, key: string, value: string): Field =>
  message(number, text(1, key), message(2, text(1, value)));

/** Records that a receiver refused in its response to a request that it took, and why. */
export function partialSuccess(response: Buffer): { refused: number; reason: string } {
  const found = { refused: 0, reason: "" };
  for (const { number, value } of readFields(response)) {
    if (number !== 1 || typeof value === "number") continue;
    for (const inner of readFields(value)) {
      if (inner.number === 1 && typeof inner.value === "number") found.refused = inner.value;
      if (inner.number === 2 && typeof inner.value !== "number") found.reason = inner.value.toString();
    }
  }
  return found;
}
