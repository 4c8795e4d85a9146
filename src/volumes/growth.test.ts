import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { growthStep } from "./growth.ts";

suite("volume autoextend", () => {
  const steps: [Parameters<typeof growthStep>[0], number, number][] = [
    [{ add_size_gb: 2 }, 10, 2],
    [{ add_size_percent: 25 }, 10, 3],
    [{ add_size_percent: 10, min_add_size_gb: 5 }, 10, 5],
    [{ add_size_percent: 60, min_add_size_gb: 5 }, 10, 6],
    [{ add_size_gb: 1, add_size_percent: 10 }, 100, 10],
    [{ min_add_size_gb: 5 }, 10, 0],
    [{}, 10, 0],
  ];
  for (const [rule, size_gb, step] of steps) {
    test(`${JSON.stringify(rule)} adds ${step} GB to a volume of ${size_gb} GB`, () => {
      assert.equal(growthStep(rule, size_gb), step);
    });
  }
});
