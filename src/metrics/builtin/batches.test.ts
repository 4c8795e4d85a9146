import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { spell } from "../batch-builder.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { Batches } from "./batches.ts";
import { SeriesShapes } from "./series-shapes.ts";
import type { BuiltinSample } from "./sources.ts";

const sample = (name: string, labels: Record<string, string>, more: Partial<BuiltinSample> = {}): BuiltinSample => ({
  org_id: "o1",
  name,
  labels,
  value: 1,
  ...more,
});
const machine = (instance: string) => ({ app: "web", region: "local", host: "0001", instance });

/** The series of a batch as text; a staleness marker is a final `!`. */
function seriesOf({ labels, ends, values }: SeriesBatch): string[] {
  return [...ends].map((end, i) => {
    const series = Buffer.from(labels.subarray(ends[i - 1] ?? 0, end)).toString("latin1");
    return Number.isNaN(values[i]) ? `${series}!` : series;
  });
}

function round(batches: Batches, samples: readonly BuiltinSample[], at = 15_000): string[] {
  const open = batches.begin(at);
  open.add(samples);
  const batch = batches.end(open).get("o1");
  return batch ? seriesOf(batch) : [];
}

const text = (name: string, labels: Record<string, string>): string =>
  Buffer.from(spell(name, labels)).toString("latin1");

suite("rounds of built-in samples", () => {
  test("a series is written with sorted labels, without empty ones", () => {
    const labels = { ...machine("i1"), zone: "z", cpu_id: "0", mode: "" };
    assert.deepEqual(round(new Batches(), [sample("svc_cpu", labels)]), [text("svc_cpu", labels)]);
    assert.deepEqual(round(new Batches(), [sample("svc_app", { app: "web", instance: "" })]), [
      text("svc_app", { app: "web" }),
    ]);
  });

  test("a series missing from a round ends with a staleness marker, and no other does", () => {
    const batches = new Batches();
    const a = sample("svc_up", machine("i1"));
    const b = sample("svc_up", machine("i2"));
    const disk = sample("svc_disk", { ...machine("i2"), device: "vdb" });
    round(batches, [a, b, disk]);
    assert.deepEqual(round(batches, [a, b]), [
      text("svc_up", a.labels),
      text("svc_up", b.labels),
      `${text("svc_disk", disk.labels)}!`,
    ]);
    assert.deepEqual(round(batches, [a]), [text("svc_up", a.labels), `${text("svc_up", b.labels)}!`]);
    assert.deepEqual(round(batches, [a]), [text("svc_up", a.labels)]);
  });

  test("a new counter starts at zero, and a duplicate series is counted once", () => {
    const batches = new Batches();
    const counter = sample("svc_net", { ...machine("i1"), device: "eth0" }, { counter: true });
    assert.equal(round(batches, [counter, counter]).length, 2);
    assert.equal(round(batches, [counter]).length, 1);
  });

  test("series from before a restart end with the first round", () => {
    const batches = new Batches();
    const stays = { __name__: "svc_up", ...machine("i1") };
    batches.adopt("o1", [stays, { __name__: "svc_up", ...machine("gone") }]);
    const found = round(batches, [sample("svc_up", machine("i1"))]);
    assert.deepEqual(found, [text("svc_up", machine("i1")), `${text("svc_up", machine("gone"))}!`]);
  });

  test("a sample that is not a number is left out", () => {
    assert.deepEqual(round(new Batches(), [sample("svc_up", machine("i1"), { value: Number.NaN })]), []);
  });

  test("unused series shapes are dropped, and the others keep their series", () => {
    const batches = new Batches();
    const steady = sample("svc_up", machine("i1"));
    for (let i = 0; i < 1100; i++)
      round(batches, [sample("svc_fs", { ...machine("i1"), mount: `/data-${i}` }), steady]);
    assert.deepEqual(round(batches, [steady]), [
      text("svc_up", steady.labels),
      `${text("svc_fs", { ...machine("i1"), mount: "/data-1099" })}!`,
    ]);
    const shapes = new SeriesShapes();
    const numbers = ["a", "b", "c"].map((name) => shapes.numberOf(sample(name, {})));
    assert.deepEqual(numbers, [0, 1, 2]);
    assert.deepEqual([...shapes.keep(new Set([2]))], [[2, 0]]);
    assert.deepEqual([shapes.size, shapes.numberOf(sample("c", {}))], [1, 0]);
  });
});
