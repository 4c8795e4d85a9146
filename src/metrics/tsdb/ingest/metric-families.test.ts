import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { tempDir } from "../../../../test/support.ts";
import { instant } from "../../promql/engine.ts";
import { contents, HandClock, NOON } from "../fixtures.ts";
import { TSDB_LIMITS } from "../limits.ts";
import { OrgDatabase } from "../org-database.ts";

/** Protobuf, written by hand; a number is a varint, a text or message has a length, `double` eight bytes. */
type Field = [number: number, value: number | string | Buffer | { double: number }];

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}

function message(...fields: Field[]): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (typeof value === "number") return Buffer.from([...varint(number * 8), ...varint(value)]);
      if (typeof value === "object" && "double" in value) {
        const bytes = Buffer.alloc(8);
        bytes.writeDoubleLE(value.double);
        return Buffer.concat([Buffer.from(varint(number * 8 + 1)), bytes]);
      }
      const bytes = Buffer.from(value as string);
      return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
    }),
  );
}

const delimited = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(varint(bytes.length)), bytes]);
const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
const packed = (...values: number[]): Buffer => Buffer.from(values.flatMap((value) => varint(zigzag(value))));
const label = message([1, "room"], [2, "a"]);

const COUNTER = message(
  [1, "jobs_total"],
  [2, "help"],
  [3, 0],
  [4, message([1, label], [3, message([1, { double: 7 }])])],
);
const CLASSIC = message(
  [1, 3],
  [2, { double: 4.5 }],
  [3, message([1, 1], [2, { double: 0.5 }])],
  [3, message([1, 2], [2, { double: 1 }])],
);
const NATIVE = message(
  ...([
    [1, 6],
    [2, { double: 9 }],
    [5, zigzag(1)],
    [6, { double: 0.001 }],
    [7, 1],
  ] as Field[]),
  ...([
    [12, message([1, zigzag(0)], [2, 2])],
    [13, packed(2, 1)],
    [3, message([1, 5], [2, { double: 1 }])],
  ] as Field[]),
);
const SUMMARY = message([1, 5], [2, { double: 2 }], [3, message([1, { double: 0.5 }], [2, { double: 3 }])]);
const PARTS = [
  delimited(COUNTER),
  delimited(message([1, "size"], [3, 4], [4, message([7, CLASSIC])])),
  delimited(message([1, "wait"], [3, 4], [4, message([7, NATIVE], [6, NOON - 500])])),
  delimited(message([1, "rest"], [3, 2], [4, message([4, SUMMARY])])),
];
const BODY = Buffer.concat(PARTS);
const OPTIONS = { format: "protobuf", timestamp_ms: NOON, labels: ["app", "web"] } as const;

const open = (): OrgDatabase => new OrgDatabase(tempDir(), new HandClock(), TSDB_LIMITS);

suite("scrapes in protobuf", () => {
  test("all types become the series that text gives, and a native histogram stays one", async (t) => {
    const org = open();
    t.after(() => org.partition.close());
    const result = org.importText(BODY, OPTIONS);
    assert.deepEqual([result.samples, result.problem_count], [10, 0]);
    const ask = (query: string): unknown => {
      const { data } = instant({ query, source: org.source, time_ms: NOON, dialect: "promql" });
      return "series" in data ? data.series.map(({ labels, values }) => [labels.join(" "), values[0]]) : undefined;
    };
    assert.deepEqual(ask("jobs_total"), [["__name__ jobs_total app web room a", 7]]);
    assert.deepEqual(ask("sort(size_bucket)"), [
      ["__name__ size_bucket app web le 0.5", 1],
      ["__name__ size_bucket app web le 1.0", 2],
      ["__name__ size_bucket app web le +Inf", 3],
    ]);
    assert.deepEqual(ask("size_count"), [["__name__ size_count app web", 3]]);
    assert.deepEqual(ask("size_sum"), [["__name__ size_sum app web", 4.5]]);
    assert.deepEqual(ask("histogram_count(wait)"), [["app web", 6]]);
    assert.deepEqual(ask("timestamp(wait) * 1000"), [["app web", NOON - 500]]);
    assert.deepEqual(ask("rest"), [["__name__ rest app web quantile 0.5", 3]]);
  });

  test("a response that is cut short anywhere is refused, and nothing of it is stored", async (t) => {
    const org = open();
    t.after(() => org.partition.close());
    const ends = new Set([0]);
    // Between two families the rest is missing, which nobody can see.
    for (const part of PARTS) ends.add(Math.max(...ends) + part.length);
    for (let end = 0; end < BODY.length; end++) {
      if (ends.has(end)) continue;
      assert.throws(() => org.importText(BODY.subarray(0, end), OPTIONS), { name: "BadWire" }, `cut at ${end}`);
    }
    assert.equal(contents(org.source).size, 0);
  });
});
