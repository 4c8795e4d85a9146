import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { range } from "../engine.ts";
import { memorySource } from "../memory-source.ts";

const LATE = '(label_set(time() < 30, "app", "early"), label_set(time() > 30, "app", "late"))';

suite("order of sort()", () => {
  for (const query of [`sort(${LATE})`, `sort_desc(${LATE})`]) {
    test(`a series without a value at the newest step comes first: ${query}`, () => {
      const { data } = range({ query, source: memorySource([]), start_ms: 10_000, end_ms: 50_000, step_ms: 10_000 });
      assert.ok(data.type === "matrix");
      assert.deepEqual(
        data.series.map(({ labels }) => labels),
        [
          ["app", "early"],
          ["app", "late"],
        ],
      );
    });
  }
});
