import assert from "node:assert/strict";
import { suite, test } from "node:test";
import snappy from "snappy";
import { random, seed, tempDir } from "../../../../test/support.ts";
import { isStale, type Labels, STALE_NAN } from "../../source.ts";
import { ByteWriter } from "../bytes.ts";
import { bitsOf, contents, HandClock, labelsOf, NOON } from "../fixtures.ts";
import { encodeLabels } from "../index/labels.ts";
import { TSDB_LIMITS, type TsdbLimits } from "../limits.ts";
import { OrgDatabase } from "../org-database.ts";
import { seriesBatch } from "./series-batch.ts";

function open(t: { after(fn: () => unknown): void }, limits: Partial<TsdbLimits> = {}): OrgDatabase {
  const org = new OrgDatabase(tempDir(), new HandClock(), { ...TSDB_LIMITS, ...limits });
  t.after(() => org.partition.close());
  return org;
}

const text = (org: OrgDatabase, body: string | Uint8Array, more: object = {}) =>
  org.importText(Buffer.from(body), { format: "prometheus", timestamp_ms: NOON, ...more });

/** `labels=value@time` of everything stored, sorted. */
function stored(org: OrgDatabase): string[] {
  return [...contents(org.source)]
    .flatMap(([labels, rows]) => rows.map(([time, bits]) => `${labels}=${bits}@${time - NOON}`))
    .sort();
}
const row = (labels: string, value: number, offset = 0): string => `${labels}=${bitsOf(value)}@${offset}`;

suite("exposition text", () => {
  test("examples of the format are parsed, with timestamps, special values and escapes", (t) => {
    const org = open(t);
    const result = text(
      org,
      `# HELP http_requests_total The total.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 ${NOON - 5}
http_requests_total{method="post",code="400",}    3
msdos_file_access{path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find file:\\n\\"FILE.TXT\\""} 1.458255915e9
metric_without_labels 12.47
something_weird{problem="division by zero"} +Inf -3982045
{"quoted.name", "a.b"="c"} -0
tabs	{ a = "1" , b = "}" }	NaN
with_exemplar 1 # {trace_id="x"} 0.5
`,
    );
    assert.deepEqual(result, { samples: 7, dropped: 1, problems: [], problem_count: 0 });
    assert.deepEqual(
      stored(org),
      [
        row("__name__,http_requests_total,code,200,method,post", 1027, -5),
        row("__name__,http_requests_total,code,400,method,post", 3),
        row('__name__,msdos_file_access,error,Cannot find file:\n"FILE.TXT",path,C:\\DIR\\FILE.TXT', 1458255915),
        row("__name__,metric_without_labels", 12.47),
        row("__name__,quoted.name,a.b,c", -0),
        row("__name__,tabs,a,1,b,}", Number.NaN),
        row("__name__,with_exemplar", 1),
      ].sort(),
    );
    assert.deepEqual(new Map(org.metadata.list).get("http_requests_total"), {
      type: "counter",
      help: "The total.",
      unit: "",
    });
    assert.equal(org.partition.admission.drops.byReason.get("too_old"), 1);
  });

  test("OpenMetrics timestamps are fractional seconds, and nothing follows # EOF", (t) => {
    const org = open(t);
    const body = `# TYPE a gauge\na 1 ${NOON / 1000 - 0.25}\n# EOF\nb 2\n`;
    assert.equal(text(org, body, { format: "openmetrics" }).samples, 1);
    assert.deepEqual(stored(org), [row("__name__,a", 1, -250)]);
  });

  test("an invalid line is skipped and reported with its position", (t) => {
    const org = open(t);
    const wrong: [string, number, RegExp][] = [
      ["a", 2, /value is missing/],
      ["a b", 3, /not a number/],
      ["a 0x10", 3, /not a number/],
      ["a 1_000", 3, /not a number/],
      ["a 1 b", 5, /not a timestamp/],
      ["a 1 2 3", 7, /behind the timestamp/],
      ['a{b="c" 1', 10, /closing brace/],
      ['a{b="c} 1', 10, /closing brace/],
      ["a{b=c} 1", 5, /" expected/],
      ['a{b"c"} 1', 4, /= expected/],
      ['a{b="c" d="e"} 1', 9, /, or } expected/],
      ["1a 1", 1, /name was expected/],
      ["{} 1", 1, /no name/],
      ['a{b="1",b="2"} 1', 1, /given twice/],
      [`a{b="${"x".repeat(5000)}"} 1`, 1, /label_value_bytes/],
      [`a{${"l".repeat(600)}="x"} 1`, 1, /label_name_bytes/],
      [`a{${Array.from({ length: 70 }, (_, i) => `l${i}="x"`).join(",")}} 1`, 1, /labels_per_series/],
    ];
    for (const [line, column, problem] of wrong) {
      const result = text(org, `ok 1\n${line}\nok2 2`);
      assert.equal(result.samples, 2, line);
      assert.equal(result.problem_count, 1, line);
      assert.equal(result.problems[0]?.line, 2, line);
      assert.equal(result.problems[0]?.column, column, line);
      assert.match(result.problems[0]?.problem ?? "", problem, line);
    }
    const invalid = Buffer.concat([Buffer.from('ok 1\na{b="'), Buffer.of(0xff, 0xfe), Buffer.from('"} 1\n')]);
    assert.match(text(org, invalid).problems[0]?.problem ?? "", /UTF-8/);
    assert.throws(() => text(org, new Uint8Array(TSDB_LIMITS.import_bytes + 1)), /import_bytes/);
  });

  test("the platform's labels win over the target's, and targets do not mix", (t) => {
    const org = open(t);
    const body = 'm{app="forged",instance="forged",x="1"} 5\n';
    for (const app of ["one", "two"]) text(org, body, { labels: ["app", app, "instance", `i-${app}`] });
    text(org, body, { labels: ["app", "one", "instance", "i-one"], timestamp_ms: NOON + 1 });
    assert.deepEqual(stored(org), [
      row("__name__,m,app,one,instance,i-one,x,1", 5),
      row("__name__,m,app,one,instance,i-one,x,1", 5, 1),
      row("__name__,m,app,two,instance,i-two,x,1", 5),
    ]);
  });

  test("series missing from the next scrape end with a staleness marker", (t) => {
    const org = open(t);
    text(org, "a 1\nb 1\n", { target: "i1" });
    text(org, "b 2\n", { target: "i1", timestamp_ms: NOON + 15_000 });
    text(org, "c 1\n", { target: "i2", timestamp_ms: NOON + 15_000 });
    org.endTarget("i1", NOON + 30_000);
    const ends = [...org.source.select({ selector: [[]], start_ms: NOON, end_ms: NOON + 60_000 })].map((series) => {
      const newest = series.newest(NOON - 1, NOON + 60_000);
      return `${series.labels[1]} ${(newest?.timestamp ?? 0) - NOON} ${isStale(newest?.value ?? 0)}`;
    });
    assert.deepEqual(ends.sort(), ["a 15000 true", "b 30000 true", "c 15000 false"]);
  });

  test("a repeated body takes the fast path with the same result, also reordered", (t) => {
    const org = open(t);
    const roll = random(seed(t));
    const lines = Array.from({ length: 50 }, (_, i) => [
      `m${i % 7}`,
      `m${i % 7}{i="${i}"}`,
      `m${i % 7}_x{i="${i}"}`,
    ]).flat();
    const expected = new Map<string, number>();
    for (let round = 0; round < 20; round++) {
      const order = round < 10 ? lines : lines.toSorted(() => roll() - 0.5);
      const body = order.map((key) => {
        expected.set(key, Math.floor(roll() * 1000));
        return `${key} ${expected.get(key)} ${NOON + round}`;
      });
      assert.equal(text(org, body.join("\n")).samples, body.length);
    }
    const got = org
      .federate([[]], NOON + 20, 300_000)
      .split("\n")
      .filter((line) => line && !line.startsWith("#"));
    assert.deepEqual(got.sort(), [...expected].map(([key, value]) => `${key} ${value} ${NOON + 19}`).sort());
  });

  test("hostile text is parsed without throwing or hanging", (t) => {
    const org = open(t);
    const roll = random(seed(t));
    const base = Buffer.from(
      '# TYPE a counter\na_total{x="y",z="\\"q\\\\"} 1.5e3 1700000000000 # {t="1"} 2\nb 3\n'.repeat(4),
    );
    for (let run = 0; run < 3000; run++) {
      const bytes = Buffer.from(base.subarray(0, Math.floor(roll() * base.length)));
      for (let k = 0; k < 6 && bytes.length > 0; k++)
        bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      const result = text(org, bytes, { format: roll() < 0.5 ? "prometheus" : "openmetrics" });
      assert.ok(result.samples + result.dropped + result.problem_count <= 16);
    }
  });
});

/** A WriteRequest; series are label pairs as given, so that wrong ones can be sent too. */
function request(series: { labels: Labels; samples: { time: number; value: number }[] }[]): Uint8Array {
  const out = new ByteWriter();
  for (const { labels, samples } of series) {
    const body = new ByteWriter();
    body.raw(encodeLabels(labels));
    for (const { time, value } of samples) {
      const sample = new ByteWriter();
      sample.byte(0x09);
      sample.raw(new Uint8Array(Float64Array.of(value).buffer));
      sample.byte(0x10);
      // Negative times are ten bytes of two's complement.
      for (let rest = BigInt.asUintN(64, BigInt(time)); ; rest >>= 7n) {
        sample.byte(Number(rest & 127n) | (rest > 127n ? 128 : 0));
        if (rest <= 127n) break;
      }
      body.byte(0x12);
      body.varint(sample.at);
      body.raw(sample.view());
    }
    out.byte(0x0a);
    out.varint(body.at);
    out.raw(body.view());
  }
  return out.view();
}

const send = (org: OrgDatabase, body: Uint8Array) => org.importRemoteWrite(snappy.compressSync(Buffer.from(body)));

suite("remote write", () => {
  test("series and samples are stored, again and in another order", (t) => {
    const org = open(t);
    const series = ["a", "b", "c"].map((name) => ({
      labels: labelsOf({ __name__: name, app: "web" }),
      samples: [{ time: NOON, value: name.charCodeAt(0) }],
    }));
    assert.equal(send(org, request(series)).samples, 3);
    assert.equal(send(org, request(series.toReversed())).samples, 3);
    assert.equal(send(org, request(series)).samples, 3);
    assert.deepEqual(
      stored(org),
      ["a", "b", "c"].map((name) => row(`__name__,${name},app,web`, name.charCodeAt(0))),
    );
  });

  test("a staleness marker keeps its bits; labels are sorted; empty ones are dropped", (t) => {
    const org = open(t);
    send(
      org,
      request([{ labels: ["z", "1", "__name__", "a", "app", ""], samples: [{ time: NOON, value: STALE_NAN }] }]),
    );
    assert.deepEqual(stored(org), [row("__name__,a,z,1", STALE_NAN)]);
    assert.equal(stored(org)[0], "__name__,a,z,1=7ff00000:2@0");
  });

  test("an invalid series is reported, invalid bytes refuse the whole body", (t) => {
    const org = open(t);
    const good = { labels: ["__name__", "a"], samples: [{ time: NOON, value: 1 }] };
    const result = send(
      org,
      request([good, { ...good, labels: ["app", "nameless"] }, { ...good, samples: [{ time: -5, value: 1 }] }]),
    );
    assert.deepEqual([result.samples, result.dropped, result.problem_count], [1, 2, 1]);
    assert.match(result.problems[0]?.problem ?? "", /no name/);
    assert.throws(() => org.importRemoteWrite(Buffer.from("not snappy at all")), /snappy|bytes/);
    assert.throws(() => org.importRemoteWrite(Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2)), /import_bytes/);
    const bytes = request([good]);
    for (let cut = 1; cut < bytes.length; cut++) {
      assert.throws(() => send(org, bytes.slice(0, cut)), { name: "BadWire" }, `cut at ${cut}`);
    }
  });

  test("hostile remote-write bytes are refused or parsed", (t) => {
    const org = open(t);
    const roll = random(seed(t));
    const base = request([
      { labels: labelsOf({ __name__: "a", app: "x" }), samples: [{ time: NOON, value: 1 }] },
      { labels: labelsOf({ __name__: "b", app: "x" }), samples: [{ time: NOON, value: 2 }] },
    ]);
    for (let run = 0; run < 3000; run++) {
      const bytes = base.slice();
      for (let k = 0; k < 3; k++) bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      try {
        send(org, bytes);
      } catch (thrown) {
        assert.equal(thrown instanceof Error ? thrown.name : "", "BadWire", String(thrown));
      }
    }
  });
});

suite("series batches", () => {
  test("a batch keeps its bits and finds the same series as remote write", (t) => {
    const org = open(t);
    const labels = labelsOf({ __name__: "a", app: "web" });
    send(org, request([{ labels, samples: [{ time: NOON, value: 1 }] }]));
    org.append(
      seriesBatch([
        { labels, timestamp: NOON + 1, value: 2 },
        { labels, timestamp: NOON + 2, value: STALE_NAN },
        { labels: labelsOf({ __name__: "b" }), timestamp: NOON, value: 3 },
      ]),
    );
    assert.equal(org.partition.table.alive, 2);
    assert.deepEqual(
      stored(org),
      [
        row("__name__,a,app,web", 1),
        row("__name__,a,app,web", 2, 1),
        row("__name__,a,app,web", STALE_NAN, 2),
        row("__name__,b", 3),
      ].sort(),
    );
  });
});
