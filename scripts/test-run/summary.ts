/** The last block of a test run: counts, time, what was skipped and why, and every failed test with its reason. */
import { relative } from "node:path";
import type { EndedTest } from "./reporter.ts";

const REASON_LINES = 12;

export function summaryOf(tests: readonly EndedTest[], { seconds, root }: { seconds: number; root: string }): string {
  const by = Map.groupBy(tests, ({ outcome }) => outcome);
  const count = (outcome: EndedTest["outcome"]): number => by.get(outcome)?.length ?? 0;
  const skipped = Map.groupBy(by.get("skipped") ?? [], ({ reason }) => reason || "no reason given");
  const lines = [
    "",
    `${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped, in ${timeOf(seconds)}`,
    ...(skipped.size > 0 ? ["Skipped:"] : []),
    ...[...skipped].map(([reason, list]) => `  ${list.length} × ${reason}`),
    ...(by.get("failed") ?? []).flatMap((test) => failedLines(test, root)),
  ];
  return `${lines.join("\n")}\n`;
}

function failedLines({ file, names, reason }: EndedTest, root: string): string[] {
  const lines = reason.split("\n");
  const shown = lines.slice(0, REASON_LINES).map((line) => `    ${line}`);
  const more = lines.length > REASON_LINES ? [`    … ${lines.length - REASON_LINES} more lines above`] : [];
  return [`Failed: ${relative(root, file)}: ${names.join(" › ")}`, ...shown, ...more];
}

function timeOf(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
