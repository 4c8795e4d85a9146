/** VictoriaLogs' JSON lines. Streams are told apart by the fields in the query of the address. */
import { readMessage } from "#core/log-line.ts";
import type { DrainLine } from "../types.ts";

export const VICTORIALOGS_QUERY = {
  _stream_fields: "app,machine,machine_id,region,stream",
  _msg_field: "_msg",
  _time_field: "_time",
};

export function victoriaLogsBody(lines: readonly DrainLine[]): string {
  const written = lines.map(({ stamp, stream, message, machine }) =>
    JSON.stringify({
      _time: stamp,
      _msg: message,
      app: machine.app_name,
      machine: machine.name,
      machine_id: machine.id,
      region: machine.region,
      stream,
      // Without one the field is not there.
      level: readMessage(message).level,
    }),
  );
  return `${written.join("\n")}\n`;
}
