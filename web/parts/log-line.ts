/** Which lines are shown. */
import { type Line, readLine } from "#client/log-line.ts";

export interface LogFilter {
  text: string;
  level: string;
  machine: string;
  /** Milliseconds since 1970. */
  since: number;
}

/** Every word must be in the line, or in the name or id of its machine. */
export function matches(line: Line, { text, level, machine, since }: LogFilter): boolean {
  if (line.timestamp < since || (machine !== "" && line.machine_id !== machine)) return false;
  if (level !== "" && readLine(line).level !== level) return false;
  const hay = `${line.machine_name ?? ""} ${line.message}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => hay.includes(word));
}
