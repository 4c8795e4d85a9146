/** The parts of the way to an engine elsewhere that need no engine. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { labelsOf } from "../tsdb/fixtures.ts";
import { TSDB_LIMITS } from "../tsdb/limits.ts";
import { textWithin } from "./client.ts";
import { RemoteIntake } from "./intake.ts";
import { DiskQueue } from "./queue.ts";

suite("the way to an engine elsewhere", () => {
  test("series are counted by their app, whatever else is called so", () => {
    const intake = new RemoteIntake({ ...TSDB_LIMITS, series_per_app: 1 }, [], () => undefined);
    const refs = ["web", "db", "web"].map((app, k) => intake.series(labelsOf({ __name__: "app", app, k: String(k) })));
    assert.deepEqual(refs, [0, 1, undefined]);
  });

  test("a disk that takes no new file refuses as one that is full does", () => {
    const dir = tempDir();
    const queue = new DiskQueue(dir);
    rmSync(dir, { recursive: true });
    assert.throws(() => queue.put(0, Buffer.from("x")), { name: "StorageError" });
  });

  test("an answer is cut off at its bound, also when it does not say how long it is", async () => {
    const pieces = (count: number): Response =>
      new Response(ReadableStream.from(Array.from({ length: count }, () => Buffer.from("\u00fc".repeat(5)))));
    assert.equal(await textWithin(pieces(10), 100), "\u00fc".repeat(50));
    await assert.rejects(textWithin(pieces(11), 100), { code: "query_failed", message: /answer_bytes/ });
  });
});
