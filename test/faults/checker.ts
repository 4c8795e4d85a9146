/** Says what is wrong with a history: lost writes, stale reads, leases of two, lists without what was made, late answers. */
import { ANY, type Down, type Operation } from "./history.ts";
import { registerProblems } from "./registers.ts";

interface Lease {
  process: string;
  name: string;
  invoked: number;
  /** Surely held from here … */
  from: number;
  /** … to here: a lease begins after it was asked for, and ends when it is released or its time is over. */
  to: number;
}

/** Every problem of a history, by kind; each list is empty when all is well. */
export interface Verdict {
  /** Acknowledged writes that are not there, and reads that are older than one. */
  registers: string[];
  leases: string[];
  lists: string[];
  /** A process that was able to answer and did not, in time. */
  late: string[];
}

export function check(
  operations: readonly Operation[],
  { down, answer_ms }: { down: readonly Down[]; answer_ms: number },
): Verdict {
  const of = (...kinds: readonly Operation["kind"][]): [string, Operation[]][] => [
    ...Map.groupBy(
      operations.filter(({ kind }) => kinds.includes(kind)),
      ({ key }) => key,
    ),
  ];
  return {
    registers: of("write", "read").flatMap(([key, own]) => registerProblems(key, own)),
    leases: of("acquire", "release").flatMap(([key, own]) => leaseProblems(key, own)),
    lists: listProblems(operations),
    late: lateAnswers(operations, down, answer_ms),
  };
}

export const problemsOf = (verdict: Verdict): string[] => Object.values(verdict).flat();

function leaseProblems(key: string, operations: readonly Operation[]): string[] {
  const released = new Map(operations.flatMap((one) => (one.kind === "release" ? [[one.value, one.invoked]] : [])));
  const leases = operations.flatMap(({ kind, outcome, process, value = "", invoked, ended, ttl_ms = 0 }): Lease[] => {
    if (kind !== "acquire" || outcome !== "ok") return [];
    return [
      {
        process,
        name: value,
        invoked,
        from: ended,
        to: Math.min(invoked + ttl_ms, released.get(value) ?? Number.POSITIVE_INFINITY),
      },
    ];
  });
  const problems: string[] = [];
  for (const [index, a] of leases.entries()) {
    for (const b of leases.slice(index + 1)) {
      if (both(a, b) || within(a, b) || within(b, a))
        problems.push(`${key}: ${a.process} gave ${a.name} and ${b.process} gave ${b.name} at the same time`);
    }
  }
  return problems;
}

const both = (a: Lease, b: Lease): boolean => Math.max(a.from, b.from) < Math.min(a.to, b.to);
/** All of the time in which `b` was given, `a` was surely held. */
const within = (a: Lease, b: Lease): boolean => a.from <= b.invoked && b.from <= a.to;

/** What was made before a list was asked for is in it; what is in it, somebody asked for. */
function listProblems(operations: readonly Operation[]): string[] {
  const made = operations.filter(({ kind, outcome }) => kind === "create" && outcome === "ok");
  const known = new Set(made.map(({ value }) => value));
  const open = operations.some(({ kind, outcome }) => kind === "create" && outcome === "unknown");
  return operations.flatMap(({ kind, outcome, process, values = [], invoked, ended }) => {
    if (kind !== "list" || outcome !== "ok") return [];
    const listed = new Set<string | undefined>(values);
    const missing = made.filter((one) => one.ended < invoked && !listed.has(one.value));
    const early = made.filter((one) => ended < one.invoked && listed.has(one.value));
    const strange = open ? [] : values.filter((value) => !known.has(value));
    return [
      ...missing.map(({ value }) => `${process} does not list ${value}, which was acknowledged before`),
      ...early.map(({ value }) => `${process} lists ${value} before it was asked for`),
      ...strange.map((value) => `${process} lists ${value}, which nobody asked for`),
    ];
  });
}

function lateAnswers(operations: readonly Operation[], down: readonly Down[], answer_ms: number): string[] {
  return operations.flatMap(({ kind, key, process, invoked, ended }) => {
    // A create is as many attempts as it takes; each of them is judged.
    if (process === ANY || ended - invoked <= answer_ms) return [];
    const excused = down.some((one) => one.process === process && one.from < ended && invoked < one.to);
    return excused ? [] : [`${process} took ${Math.round(ended - invoked)} ms for ${kind} ${key}`];
  });
}

/** The states in which a machine may be at the end, by the last things that were asked of it one after the other. */
export function statesAtEnd(
  operations: readonly Operation[],
  machine: string,
  at_first: "started" | "stopped",
): string[] {
  let states = new Set<string>([at_first]);
  const own = operations.filter(({ kind, key }) => key === machine && (kind === "stop" || kind === "start"));
  for (const { kind, outcome } of own.sort((a, b) => a.invoked - b.invoked)) {
    const state = kind === "stop" ? "stopped" : "started";
    if (outcome === "ok") states = new Set([state]);
    if (outcome === "unknown") states.add(state);
  }
  return [...states];
}
