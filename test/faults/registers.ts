/**
 * Whether a register behaved as if everything happened one at a time (linearizable). Every write has a value of its own,
 * so each read says which write it saw. A value is then in force at least from the first moment at which something that
 * had to do with it was over until the last moment at which something that had to do with it began; two such stretches may
 * not overlap, and no value may have come and gone within one of another (Gibbons and Korach, 1997).
 */
import type { Operation } from "./history.ts";

interface Cluster {
  value: string | undefined;
  write: Pick<Operation, "invoked" | "ended">;
  reads: Operation[];
}

interface Zone {
  value: string | undefined;
  from: number;
  to: number;
}

const BEGINNING = { invoked: Number.NEGATIVE_INFINITY, ended: Number.NEGATIVE_INFINITY };
const named = (value: string | undefined): string => (value === undefined ? "nothing" : JSON.stringify(value));

/** What is wrong with the reads and writes of one register, in words. */
export function registerProblems(key: string, operations: readonly Operation[]): string[] {
  const clusters = clustersOf(operations);
  const refused = new Set(operations.flatMap(({ kind, outcome, value }) => (isRefused(kind, outcome) ? [value] : [])));
  const reads = operations.filter(({ kind, outcome }) => kind === "read" && outcome === "ok");
  const problems = reads.flatMap((read) => {
    const { value, process, ended } = read;
    const cluster = clusters.get(value);
    const said = `${key}: ${process} read ${named(value)}`;
    if (!cluster) return [`${said}, which ${refused.has(value) ? "was refused" : "nobody wrote"}`];
    cluster.reads.push(read);
    return ended < cluster.write.invoked ? [`${said} before it was written`] : [];
  });
  return [...problems, ...zoneProblems(key, [...clusters.values()])];
}

const isRefused = (kind: Operation["kind"], outcome: Operation["outcome"]): boolean =>
  kind === "write" && outcome === "fail";

/** Every write that may have happened, and the beginning, when nothing was there. */
function clustersOf(operations: readonly Operation[]): Map<string | undefined, Cluster> {
  const clusters = new Map<string | undefined, Cluster>();
  clusters.set(undefined, { value: undefined, write: BEGINNING, reads: [] });
  for (const { kind, outcome, value, invoked, ended } of operations) {
    if (kind !== "write" || outcome === "fail") continue;
    // One that was left open may still happen at any time.
    const over = outcome === "ok" ? ended : Number.POSITIVE_INFINITY;
    clusters.set(value, { value, write: { invoked, ended: over }, reads: [] });
  }
  return clusters;
}

function zoneProblems(key: string, clusters: readonly Cluster[]): string[] {
  // A write that was left open and that nobody saw may never have happened.
  const seen = clusters.filter(({ write, reads }) => write.ended !== Number.POSITIVE_INFINITY || reads.length > 0);
  const zones = seen.map(({ value, write, reads }): Zone => {
    const all = [write, ...reads];
    return {
      value,
      from: Math.min(...all.map(({ ended }) => ended)),
      to: Math.max(...all.map(({ invoked }) => invoked)),
    };
  });
  const forward = zones.filter(({ from, to }) => from < to);
  const backward = zones.filter(({ from, to }) => from >= to);
  const problems: string[] = [];
  for (const [index, a] of forward.entries()) {
    for (const b of forward.slice(index + 1))
      if (a.from < b.to && b.from < a.to)
        problems.push(`${key}: ${named(a.value)} and ${named(b.value)} were both in force`);
    for (const b of backward)
      if (a.from < b.to && b.from < a.to)
        problems.push(`${key}: ${named(b.value)} came after ${named(a.value)}, which was there again later`);
  }
  return problems;
}
