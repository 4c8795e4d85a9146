import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { performancePage } from "../bench/page.ts";
import { plot } from "../bench/plot.ts";
import { DOCS, type Measured, readMeasured, worse } from "../bench/record.ts";
import { PrintedReport } from "../bench/report.ts";
import { scalePage } from "../bench/scale-page.ts";
import { TOP_LINES, topLines } from "../bench/top.ts";

suite("benchmark report", () => {
  test("figures are shown as multiples of their peer and against their target", () => {
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

  test("a peer that was not measured in the same section is an error", () => {
    const report = new PrintedReport(() => {});
    report.section("one");
    report.add({ what: "theirs", value: 1, unit: "s" });
    report.section("two");
    assert.throws(() => report.add({ what: "ours", value: 1, unit: "s", to: "theirs" }), /no figure "theirs"/);
  });

  test("a ratio that got a fifth worse is reported, in either direction", () => {
    const measured = (requests: number, time: number): Measured => {
      const report = new PrintedReport(() => {});
      report.section("speed & size");
      report.add({ what: "theirs", value: 100, unit: "req" });
      report.add({ what: "ours", value: requests, unit: "req", to: "theirs" });
      report.add({ what: "their time", value: 10, unit: "ms" });
      report.add({ what: "our time", value: time, unit: "ms", to: "their time", at_most: 6 });
      return { area: "api", date: "2026-01-02", machine: { cores: 2 }, figures: report.rows, skipped: report.skipped };
    };
    const before = measured(200, 5);
    assert.deepEqual(worse(before, measured(190, 5.5)), []);
    assert.deepEqual(worse(before, measured(400, 1)), []);
    assert.deepEqual(worse(before, measured(150, 7)), [
      "api, speed & size: ours was 2 × theirs, is 1.5 ×",
      "api, speed & size: our time was 0.5 × their time, is 0.7 ×",
    ]);
    const page = performancePage([before], new Set(["api"]));
    assert.match(page, /1 of 1 targets met.*api\.svg.*\| our time \| 5 ms \| 0\.5 × their time \| met: at most 6 \|/s);
    const picture = plot("api", before.figures) ?? "";
    assert.match(picture, /speed &amp; size/);
    assert.equal(picture.match(/class="better"/g)?.length, 2);
    assert.equal(plot("api", before.figures.slice(0, 1)), undefined);
  });

  test("every benchmark line of README.md has its figure", () => {
    const lines = topLines(readMeasured());
    assert.equal(lines.length, TOP_LINES.length, `a figure was renamed:\n${lines.join("\n")}`);
    for (const line of lines) assert.match(line, /^\| [A-Z].* \| [\d.,]+ .*\|$/);
    assert.doesNotMatch(lines.join(""), /undefined|NaN/);
  });

  test("docs/scale.md has the figures that were recorded last, and none written by hand", () => {
    const page = readFileSync(join(DOCS, "scale.md"), "utf8");
    assert.equal(scalePage(page, readMeasured()), page, "npm run bench AREA -- --record writes them");
    const prose = page
      .replaceAll(/<!-- ([\w ]+): written by the run -->[\s\S]*?<!-- \/\1 -->/g, "")
      .replaceAll(/`[^`]*`|\[[^\]]*\]\([^)]*\)|^\d+\. /gm, "");
    assert.deepEqual(prose.match(/.*\d.*/g), null);
  });
});
