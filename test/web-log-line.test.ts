/** Log lines as the dashboard reads them: levels and fields as common libraries write them, and filters. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { readLine } from "#client/log-line.ts";
import { matches } from "../web/parts/log-line.ts";

const read = (message: string) => readLine({ timestamp: 1, stream: "stdout", message });

suite("log lines of the dashboard", () => {
  test("levels are recognized as pino, zap, logfmt, Python, nginx and syslog write them", () => {
    const lines: [string, string | undefined][] = [
      ['{"level":50,"time":1,"msg":"broken"}', "error"],
      ['{"level":"warn","ts":1,"msg":"slow"}', "warn"],
      ['{"severity":"INFO","message":"ok"}', "info"],
      ['time=2026-01-01T00:00:00Z level=debug msg="x"', "debug"],
      ["2026-01-01 12:00:00,123 ERROR app: boom", "error"],
      ["2026/01/01 12:00:00 [warn] 7#7: slow", "warn"],
      ["WARNING:root:careful", "warn"],
      ["GET /errors/1 200", undefined],
      ["information about nothing", undefined],
    ];
    for (const [message, level] of lines) assert.equal(read(message).level, level, message);
  });

  test("a JSON line has its message, its fields without level and time, and its request", () => {
    const line = read('{"level":30,"time":1,"msg":"served","request_id":"r1","took":{"ms":3}}');
    assert.deepEqual([line.text, line.request_id], ["served", "r1"]);
    assert.deepEqual(line.fields, [
      ["request_id", "r1"],
      ["took", { ms: 3 }],
    ]);
    assert.deepEqual(read("{not json}").fields, []);
    assert.equal(read("got 01M7RNJ3WQYXQ88PXXEM83PEF5 from edge").request_id, "01M7RNJ3WQYXQ88PXXEM83PEF5");
  });

  test("filters by words, level, machine and time must all match", () => {
    const line = { timestamp: 50, stream: "stdout", message: "ERROR disk full", machine_id: "m1", machine_name: "db" };
    const all = { text: "", level: "", machine: "", since: 0 };
    assert.equal(matches(line, { text: "full DISK db", level: "error", machine: "m1", since: 50 }), true);
    for (const wrong of [{ text: "empty" }, { level: "info" }, { machine: "m2" }, { since: 51 }])
      assert.equal(matches(line, { ...all, ...wrong }), false, JSON.stringify(wrong));
  });
});
