import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tempDir } from "../../../../../test/support.ts";
import { pressureOf } from "./cgroup-stats.ts";

test("pressure is read from the kernel in centiseconds, and left out where it is not counted", () => {
  const unified = tempDir();
  const line = (kind: string, total: number): string => `${kind} avg10=0.12 avg60=3.40 avg300=0.00 total=${total}\n`;
  writeFileSync(join(unified, "memory.pressure"), line("some", 1_234_567) + line("full", 20_000));
  writeFileSync(join(unified, "cpu.pressure"), line("some", 9_999));
  writeFileSync(join(unified, "io.pressure"), "");
  assert.deepEqual(pressureOf({ unified }), { memory: { some: 123, full: 2 }, cpu: { some: 0 } });
  assert.deepEqual(pressureOf({ memory: "/nowhere" }), {});
});
