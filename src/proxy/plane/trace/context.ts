/** W3C Trace Context, level 1: the headers `traceparent` and `tracestate`. */

export interface TraceContext {
  trace_id: string;
  /** The caller's span. */
  parent_id: string;
  sampled: boolean;
  /** The valid `tracestate`; empty when there is none. */
  state: string;
}

/** Later versions may append fields; version 00 has none. */
const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
const SAMPLED = 1;

/** Level 1 allows 32 members; a longer list is dropped as a whole. */
const MOST_MEMBERS = 32;
/** Keys as level 2 allows them, which includes those of level 1. */
const MEMBER = /^[0-9a-z][-_*/@0-9a-z]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * The context in these header lines; undefined when there is none or it is invalid, so that a new trace begins. An
 * invalid `tracestate` alone is dropped, and the trace continues.
 */
export function readContext(lines: string): TraceContext | undefined {
  const parents: string[] = [];
  const states: string[] = [];
  for (const line of lines.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const list = line.slice(0, colon).toLowerCase() === "traceparent" ? parents : states;
    list.push(line.slice(colon + 1).trim());
  }
  const [, version, trace_id = "", parent_id = "", flags = "", more] = PARENT.exec(parents[0] ?? "") ?? [];
  if (parents.length !== 1 || version === undefined || version === "ff") return undefined;
  if ((version === "00" && more !== undefined) || ZEROS.test(trace_id) || ZEROS.test(parent_id)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0;
  return { trace_id, parent_id, sampled, state: readState(states) };
}

/** The members of all headers in order; empty when one of them is invalid. */
function readState(values: readonly string[]): string {
  const members = values
    .flatMap((value) => value.split(","))
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  return members.length <= MOST_MEMBERS && members.every((member) => MEMBER.test(member)) ? members.join(",") : "";
}

/** The header lines for a machine. Unknown flags are not passed on, as level 1 requires. */
export function contextLines({ trace_id, parent_id, sampled, state }: TraceContext): string {
  const parent = `traceparent: 00-${trace_id}-${parent_id}-${sampled ? "01" : "00"}\r\n`;
  return state === "" ? parent : `${parent}tracestate: ${state}\r\n`;
}
