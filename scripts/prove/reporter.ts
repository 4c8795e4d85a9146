/** For Node's test runner: one line of JSON for every test that shows a promise, and for everything such a test says. */
import type { TestEvent } from "node:test/reporters";
import { promisesOf } from "./promises.ts";

export interface Ended {
  /** File and line of the test. */
  at: string;
  file: string;
  test: string;
  /** By its own name and those of the suites around it. */
  promises: string[];
  passed: boolean;
  skipped: string | undefined;
  ms: number;
}

export type Line = Ended | { at: string; said: string };

interface Around {
  name: string;
  file?: string;
}

async function* reporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const around: Around[] = [];
  for await (const event of source) {
    // A suite begins before what is in it, and ends after.
    if (event.type === "test:start") around.splice(event.data.nesting, Number.POSITIVE_INFINITY, event.data);
    const line = lineOf(event, around);
    if (line) yield `${JSON.stringify(line)}\n`;
  }
}

function lineOf({ type, data }: TestEvent, around: readonly Around[]): Line | undefined {
  if (type === "test:diagnostic")
    return data.file ? { at: `${data.file}:${data.line}`, said: data.message } : undefined;
  if (type !== "test:pass" && type !== "test:fail") return undefined;
  const { file = "", line, name, nesting, details } = data;
  const suites = around.slice(0, nesting);
  const promises = [...new Set([...suites.map((suite) => suite.name), name].flatMap(promisesOf))];
  if (promises.length === 0 || details.type === "suite") return undefined;
  const skipped = data.skip === undefined || data.skip === false ? undefined : String(data.skip);
  const passed = type === "test:pass";
  // A fixture may make the test: it belongs to the file of its suite.
  return {
    at: `${file}:${line}`,
    file: suites[0]?.file ?? file,
    test: name,
    promises,
    passed,
    skipped,
    ms: details.duration_ms,
  };
}

// biome-ignore lint/style/noDefaultExport: the test runner takes a reporter by no other way.
export { reporter as default }; // oxlint-disable-line import/no-default-export -- the same
