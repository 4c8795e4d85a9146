import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { PrintedReport } from "../bench/report.ts";

suite("benchmark report", () => {
  test("figures are shown as multiples of their peer, and against their target", () => {
    const lines: string[] = [];
    const report = new PrintedReport((line) => lines.push(line));
    report.section("speed");
    report.add({ what: "theirs", value: 2000, unit: "/s" });
    report.add({ what: "ours", value: 3000.4, unit: "/s", to: "theirs", at_least: 2500, note: "p99 1 ms" });
    report.add({ what: "memory", value: 150.123, unit: "MB", at_most: 120 });
    report.skip("the rest", "there is no peer here");
    assert.deepEqual(
      lines.map((line) => line.trim().replaceAll(/ +/g, " ")),
      [
        "speed",
        "theirs 2,000 /s",
        "ours 3,000 /s 1.50 × theirs; met: at least 2500; p99 1 ms",
        "memory 150 MB MISSED: at most 120",
        "the rest: not measured, there is no peer here",
      ],
    );
    assert.deepEqual(
      report.rows.map(({ ratio, met }) => ({ ratio, met })),
      [
        { ratio: undefined, met: undefined },
        { ratio: 3000.4 / 2000, met: true },
        { ratio: undefined, met: false },
      ],
    );
  });

  test("a peer that was not measured in the same section is a mistake", () => {
    const report = new PrintedReport(() => {});
    report.section("one");
    report.add({ what: "theirs", value: 1, unit: "s" });
    report.section("two");
    assert.throws(() => report.add({ what: "ours", value: 1, unit: "s", to: "theirs" }), /no figure "theirs"/);
  });
});
