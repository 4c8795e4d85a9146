/** Syslog messages of RFC 5424, framed by their length (octet counting, RFC 6587) as RFC 5425 wants it over TLS. */
import { type Level, readMessage } from "#core/log-line.ts";
import type { DrainLine } from "../types.ts";

const USER_LEVEL = 1;
const SEVERITIES: Record<Level, number> = { error: 3, warn: 4, info: 6, debug: 7 };
/** Lengths of the header's fields. */
const CHARS = { host: 255, app: 48, process: 128 };

export const syslogBody = (lines: readonly DrainLine[]): Buffer => Buffer.concat(lines.map(syslogFrame));

function syslogFrame({ stamp, stream, message, machine }: DrainLine): Buffer {
  const priority = USER_LEVEL * 8 + SEVERITIES[readMessage(message).level ?? "info"];
  const host = field(machine.name, CHARS.host);
  const app = field(machine.app_name, CHARS.app);
  const process = field(machine.id, CHARS.process);
  // At most microseconds.
  const time = `${stamp.slice(0, 26)}Z`;
  const text = Buffer.from(`<${priority}>1 ${time} ${host} ${app} ${process} ${stream} - ${message}`);
  return Buffer.concat([Buffer.from(`${text.length} `), text]);
}

/** Printable ASCII without spaces. */
const field = (text: string, chars: number): string => text.replace(/[^\x21-\x7e]/g, "_").slice(0, chars) || "-";
