/** The parts of the way to an engine elsewhere that need no engine. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { tempDir } from "../../../test/support.ts";
import { labelsOf } from "../tsdb/fixtures.ts";
import type { Batch } from "../tsdb/head.ts";
import { TSDB_LIMITS } from "../tsdb/limits.ts";
import { textWithin } from "./client.ts";
import { RemoteIntake } from "./intake.ts";
import { REMOTE_LIMITS } from "./limits.ts";
import { DiskQueue } from "./queue.ts";

function anIntake(series_per_app: number) {
  const clock = virtualClock();
  const intake = new RemoteIntake({ limits: { ...TSDB_LIMITS, series_per_app }, clock, added: [], put() {} });
  return { intake, clock };
}

const samplesOf = (refs: number[], time: number): Batch => ({
  refs: Uint32Array.from(refs),
  timestamps: Float64Array.from(refs, () => time),
  values: new Float64Array(refs.length),
  bits: new Uint32Array(2 * refs.length),
  length: refs.length,
});

suite("remote metrics storage", () => {
  test("series are counted by their app label, not by other labels of that value", () => {
    const { intake } = anIntake(1);
    const refs = ["web", "db", "web"].map((app, k) => intake.series(labelsOf({ __name__: "app", app, k: String(k) })));
    assert.deepEqual(refs, [0, 1, undefined]);
  });

  test("series that are no longer written stop counting towards the app's limit", async () => {
    const { intake, clock } = anIntake(10);
    const write = (machine: number): number => {
      const ref = intake.series(labelsOf({ __name__: "up", app: "web", instance: String(machine) }));
      return intake.append(samplesOf(ref === undefined ? [] : [ref], clock.now()));
    };
    for (let machine = 0; machine < 10; machine++) assert.equal(write(machine), 1);
    assert.equal(write(10), 0, "one too many at once");
    for (let machine = 10; machine < 100; machine++) {
      if (machine % 10 === 0) {
        await clock.advance(REMOTE_LIMITS.series_known_ms);
        // Whatever comes next; the app's own would still be refused.
        intake.append(samplesOf([], clock.now()));
      }
      assert.equal(write(machine), 1, `machine ${machine}`);
    }
  });

  test("a disk that cannot create a file reports a storage error", () => {
    const dir = tempDir();
    const queue = new DiskQueue(dir);
    rmSync(dir, { recursive: true });
    assert.throws(() => queue.put(0, Buffer.from("x")), { name: "StorageError" });
  });

  test("a response is cut off at its limit, also without a content length", async () => {
    const pieces = (count: number): Response =>
      new Response(ReadableStream.from(Array.from({ length: count }, () => Buffer.from("\u00fc".repeat(5)))));
    assert.equal(await textWithin(pieces(10), 100), "\u00fc".repeat(50));
    await assert.rejects(textWithin(pieces(11), 100), { code: "query_failed", message: /answer_bytes/ });
  });
});
