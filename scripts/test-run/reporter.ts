/** For Node's test runner: one line of JSON for every test that ended, for the summary behind the last group. */
import type { TestEvent } from "node:test/reporters";

export interface EndedTest {
  file: string;
  /** The names of the suites around it, and its own. */
  names: string[];
  outcome: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  reason: string;
}

async function* reporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const around: string[] = [];
  for await (const event of source) {
    // A suite begins before what is in it, and ends after.
    if (event.type === "test:start") around.splice(event.data.nesting, Number.POSITIVE_INFINITY, event.data.name);
    const ended = endedOf(event, around);
    if (ended) yield `${JSON.stringify(ended)}\n`;
  }
}

function endedOf({ type, data }: TestEvent, around: readonly string[]): EndedTest | undefined {
  if (type !== "test:pass" && type !== "test:fail") return undefined;
  const { file = "", name, nesting, details, skip } = data;
  const names = [...around.slice(0, nesting), name];
  const skipped = skip !== undefined && skip !== false;
  if (skipped) return { file, names, outcome: "skipped", reason: skip === true || skip === "" ? "" : String(skip) };
  const error = type === "test:fail" ? data.details.error : undefined;
  const cause = error?.cause instanceof Error ? error.cause : error;
  // A suite fails with its tests, which report their own failure.
  const isEcho = (error as { failureType?: string } | undefined)?.failureType === "subtestsFailed";
  if (isEcho || (details.type === "suite" && !error)) return undefined;
  const outcome = type === "test:pass" ? "passed" : "failed";
  return { file, names, outcome, reason: cause ? (cause.stack ?? String(cause.message)) : "" };
}

// biome-ignore lint/style/noDefaultExport: the test runner takes a reporter by no other way.
export { reporter as default }; // oxlint-disable-line import/no-default-export -- the same
