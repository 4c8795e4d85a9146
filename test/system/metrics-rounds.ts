/** What the crash tests write, and how they look at what is left of it. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { EMPTY_HISTOGRAM, equalHistograms, type FloatHistogram } from "#metrics/histogram/histogram.ts";
import { HistogramTable } from "#metrics/histogram/table.ts";
import type { Labels } from "#metrics/source.ts";
import { newColumns } from "#metrics/tsdb/chunk/chunk.ts";
import { bitsOf, contents, HandClock, labelsOf, openPartition } from "#metrics/tsdb/fixtures.ts";
import type { Partition } from "#metrics/tsdb/partition.ts";

export const SERIES = 20;
const START_MS = Date.UTC(2026, 0, 1);

export function roundTime(round: number): number {
  return START_MS + round * 60_000;
}

export function seriesOf(k: number): Labels {
  return labelsOf({ __name__: "rounds", app: "crash", k: String(k) });
}

/** The series of native histograms. */
export const NATIVE = labelsOf({ __name__: "native", app: "crash" });

/** Its buckets move with the rounds. */
export function nativeOf(round: number): FloatHistogram {
  const first = Math.floor(round / 10) - 5;
  const positive = { indexes: [first, first + 1, first + 4], counts: [round, 2 * round, round / 4] };
  return { ...EMPTY_HISTOGRAM, schema: round % 9, count: 4 * round, sum: round / 3, positive };
}

interface Writer {
  /** The newest round it said was appended, and the newest it said was on the disk; -1 for none. */
  readonly said: { appended: number; flushed: number };
  /** The newest round it said was appended so long ago; -1 for none. */
  appendedBefore(ms: number): number;
  /** Resolves when it has said that something is on the disk, or has ended. */
  readonly begun: Promise<void>;
  /** Kills it and waits until it is gone. */
  kill(): Promise<void>;
}

/** It is killed when the test ends, if it still runs then. */
export function startWriter(
  t: Pick<TestContext, "after">,
  dir: string,
  first: number,
  mode: "sync" | "nosync" | "timer",
): Writer {
  const child = spawn(process.execPath, [join(import.meta.dirname, "metrics-writer.ts"), dir, String(first), mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = { appended: -1, flushed: -1 };
  const history: { at: number; round: number }[] = [];
  // "close", not "exit": by then every line it wrote before its end has been read.
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const begun = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [kind, round] = line.split(" ");
      if (kind === "A") {
        said.appended = Number(round);
        history.push({ at: performance.now(), round: said.appended });
      } else said.flushed = Number(round);
      if (said.flushed >= 0) resolve();
    });
    void ended.then(resolve);
  });
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  t.after(kill);
  const appendedBefore = (ms: number): number => {
    const then = performance.now() - ms;
    return history.findLast(({ at }) => at < then)?.round ?? -1;
  };
  return { said, appendedBefore, begun, kill };
}

/** The rounds of which there is a histogram. */
function nativeRounds({ source }: Partition, odd: string[]): number[] {
  const histograms = new HistogramTable();
  const columns = { ...newColumns(), histograms };
  const selector = [[{ name: "__name__", op: "=", value: "native" } as const]];
  for (const series of source.select({ selector, start_ms: -8.64e15, end_ms: 8.64e15 })) series.read(columns);
  return Array.from(columns.timestamps.subarray(0, columns.length), (time, i) => {
    const round = (time - roundTime(0)) / 60_000;
    const found = histograms.at(columns.values, i);
    if (!found || !equalHistograms(found, nativeOf(round))) odd.push(`a histogram at round ${round}`);
    return round;
  });
}

/** How many rounds are there, complete and right from the first on; anything odd is told. */
export async function roundsLeft(
  dir: string,
  now_ms: number,
): Promise<{ rounds: number; odd: string[]; blocks: number }> {
  const partition = openPartition(dir, new HandClock(now_ms), { retention_ms: 1e12 });
  const counts = new Map<number, number>();
  const odd: string[] = [];
  for (const [labels, rows] of contents(partition.source)) {
    for (const [time, bits] of rows) {
      const round = (time - roundTime(0)) / 60_000;
      counts.set(round, (counts.get(round) ?? 0) + 1);
      if (bits !== bitsOf(round)) odd.push(`${labels} at round ${round}`);
    }
  }
  for (const round of nativeRounds(partition, odd)) counts.set(round, (counts.get(round) ?? 0) + 1);
  let rounds = 0;
  while (counts.get(rounds) === SERIES + 1) rounds++;
  if (counts.size !== rounds) odd.push(`${counts.size} rounds, but only the first ${rounds} are complete`);
  const { length: blocks } = partition.blocks;
  await partition.close();
  return { rounds, odd, blocks };
}
