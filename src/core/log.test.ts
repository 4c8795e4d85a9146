import assert from "node:assert/strict";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../test/support.ts";
import { LIMITS } from "./limits.ts";
import { openLog } from "./log.ts";

suite("log", () => {
  test("log lines are JSON, and lines below the level are dropped", () => {
    const file = join(tempDir(), "log");
    const log = openLog(file, "info");
    log.debug({}, "too quiet");
    log.info({ app: "a" }, "said");
    log.close();
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const [first] = lines.map((line) => JSON.parse(line) as { app: string; msg: string });
    assert.equal(lines.length, 1);
    assert.deepEqual([first?.app, first?.msg], ["a", "said"]);
  });

  test("the log file is rotated at its size limit without losing lines", () => {
    const file = join(tempDir(), "log");
    const log = openLog(file, "info");
    const words = "x".repeat(1 << 20);
    const count = Math.ceil(LIMITS.log_file_bytes / words.length) + 1;
    for (let i = 0; i < count; i++) log.info({ words }, "long");
    log.close();
    const lines = [`${file}.1`, file].flatMap((name) => readFileSync(name, "utf8").trimEnd().split("\n"));
    assert.equal(lines.length, count);
  });

  test("lines logged after close are dropped and reach no other file", () => {
    const dir = tempDir();
    const log = openLog(join(dir, "log"), "info");
    log.close();
    const other = openSync(join(dir, "other"), "w");
    log.info({}, "late");
    closeSync(other);
    assert.equal(readFileSync(join(dir, "other"), "utf8"), "");
  });

  test("a full disk drops log lines and throws nothing", { skip: !existsSync("/dev/full") }, () => {
    const log = openLog("/dev/full", "info");
    log.info({}, "lost");
    log.info({}, "lost too");
    log.close();
  });
});
