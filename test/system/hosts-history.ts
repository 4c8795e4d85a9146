/** Journals of hosts, laid side by side: when each machine really could run where. */
import { existsSync, readFileSync } from "node:fs";

interface Line {
  at: number;
  what: "begin" | "end" | "until" | "shut" | "open" | "exempt" | "include";
  id?: string;
  until?: number;
}

export interface Span {
  host: string;
  machine: string;
  from: number;
  to: number;
}

/** The lines of a journal; a last one that a kill cut short never was. */
export function readJournal(file: string): Line[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Line] : []));
}

/** Stretches in which the host's fence let things run: from its opening until it is shut, or its time is over. */
function windows(lines: readonly Line[]): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  let allowed = 0;
  for (const { what, at, until = 0 } of lines) {
    const last = found.at(-1);
    const open = last !== undefined && last.to >= at;
    if (what === "until") allowed = until;
    if (what === "until" && open) last.to = until;
    if (what === "open" && !open) found.push({ from: at, to: allowed });
    if (what === "shut" && open) last.to = at;
  }
  return found;
}

const ALWAYS = [{ from: 0, to: Number.POSITIVE_INFINITY }];

/**
 * When machines could run on a host: from begin to end, as far as the fence was open or left them alone. What begins is
 * fenced, whatever was said of it before.
 */
export function spansOf(host: string, lines: readonly Line[]): Span[] {
  const open = windows(lines);
  const running = new Map<string, { since: number; exempt: boolean }>();
  const spans: Span[] = [];
  const close = (machine: string, to: number): void => {
    const stretch = running.get(machine);
    running.delete(machine);
    for (const one of stretch?.exempt ? ALWAYS : open) {
      const span = { host, machine, from: Math.max(stretch?.since ?? to, one.from), to: Math.min(to, one.to) };
      if (span.from < span.to) spans.push(span);
    }
  };
  for (const { what, id, at } of lines) {
    if (id === undefined) continue;
    const ran = running.has(id);
    if (what === "end" || ran) close(id, at);
    if (what === "begin" || (ran && what !== "end")) running.set(id, { since: at, exempt: what === "exempt" });
  }
  for (const machine of Array.from(running.keys())) close(machine, Number.POSITIVE_INFINITY);
  return spans;
}

/** Every pair of stretches in which one machine could run on two hosts at once. */
export function twice(spans: readonly Span[]): [Span, Span][] {
  const found: [Span, Span][] = [];
  for (const own of Map.groupBy(spans, ({ machine }) => machine).values()) {
    for (const [index, a] of own.entries()) {
      for (const b of own.slice(index + 1)) {
        if (a.host !== b.host && a.from < b.to && b.from < a.to) found.push([a, b]);
      }
    }
  }
  return found;
}
