/** Logs are rotated, archived, read across their files, and deleted by age and budget. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { type Log, silentLog } from "#core/log.ts";
import { KEPT_LOGS, type KeptLogs } from "#core/log-settings.ts";
import { LOG_BEGIN, type LogsFrom } from "#machines/runtime/driver.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { AT, logHost, logLine } from "./fixtures.ts";
import { LogKeeper } from "./log-keeper.ts";
import { readLog } from "./logs.ts";

function keeping(kept: KeptLogs = KEPT_LOGS, log: Log = silentLog) {
  const host = logHost();
  // The files have the box's time.
  const clock = virtualClock(Date.now());
  const keeper = new LogKeeper(host.layout, kept, { clock, log });
  const machine = (id: string, org_id = "o1") => {
    const paths = host.machine(id);
    keeper.started(id, org_id);
    const read = (from: LogsFrom) => readLog(paths, from, keeper.onDamage);
    const names = (): string[] => readdirSync(paths.logs).sort();
    const archived = (): string[] => names().filter((name) => name.endsWith(".zst"));
    return { paths, read, names, archived };
  };
  return { keeper, clock, machine };
}

const FILE_LINES = 75_000;
/** Numbered lines, more than a file holds. */
const lines = (from: number, count = FILE_LINES): string =>
  Array.from({ length: count }, (_, index) => logLine(AT + from + index, `${from + index} some words`)).join("");
const numbers = (messages: readonly { message: string }[]): number[] =>
  messages.map(({ message }) => Number(message.split(" ")[0]));
const upTo = (end: number, from = 0): number[] => Array.from({ length: end - from }, (_, index) => from + index);

/** Writes this many files' worth, as a monitor does that opens its log again when it is told to. */
async function fill({ keeper }: ReturnType<typeof keeping>, log: string, files: number): Promise<void> {
  for (let file = 0; file < files; file++) {
    appendFileSync(log, lines(file * FILE_LINES));
    await keeper.look();
  }
  appendFileSync(log, lines(files * FILE_LINES, 10));
  await keeper.look();
}

suite("kept logs", () => {
  test("every line is read once, in order, over archived, rotated and current files", async () => {
    const host = keeping();
    const { paths, read, archived } = host.machine("m1");
    await fill(host, paths.log, 3);
    assert.equal(archived().length, 3);
    const all: number[] = [];
    for (let cursor = LOG_BEGIN; ; ) {
      const page = await read({ cursor });
      if (page.lines.length === 0) break;
      all.push(...numbers(page.lines));
      cursor = page.cursor;
    }
    assert.deepEqual(all, upTo(3 * FILE_LINES + 10));
    const newest = await read({ tail: FILE_LINES * 2 });
    assert.deepEqual(numbers(newest.lines), upTo(3 * FILE_LINES + 10, FILE_LINES + 10));
    const since = await read({ tail: 5, since: AT + 100, until: AT + 200 });
    assert.deepEqual(numbers(since.lines), [195, 196, 197, 198, 199]);
    const bytes = Object.fromEntries(archived().map((name) => [name, statSync(join(paths.logs, name)).size]));
    for (const [name, size] of Object.entries(bytes))
      assert.ok(size < RUNC_LIMITS.log_bytes / 4, `${name} has ${size}`);
  });

  test("a reader at the end of a file goes on in the next one, also when it was archived meanwhile", async () => {
    const host = keeping();
    const { paths, read, names } = host.machine("m1");
    appendFileSync(paths.log, lines(0));
    const { cursor } = await read({ tail: 0 });
    await host.keeper.look();
    assert.ok(!names().includes("log"), "rotated, and not opened again yet");
    assert.deepEqual((await read({ cursor })).lines, []);
    appendFileSync(paths.log, lines(FILE_LINES));
    await host.keeper.look();
    appendFileSync(paths.log, lines(2 * FILE_LINES, 5));
    await host.keeper.look();
    const seen: number[] = [];
    for (let at = cursor, rounds = 0; rounds < 100 && seen.length < FILE_LINES + 5; rounds++) {
      const page = await read({ cursor: at });
      seen.push(...numbers(page.lines));
      at = page.cursor;
    }
    assert.deepEqual(seen, upTo(2 * FILE_LINES + 5, FILE_LINES));
  });

  test("a line of many parts is whole in an archived log", async () => {
    const host = keeping();
    const { paths, read, archived } = host.machine("m1");
    const long = "é".repeat(6000);
    let text = "";
    for (let at = 0; text.length < RUNC_LIMITS.log_bytes; at++)
      text +=
        logLine(AT + at, long, "stdout", "P") + logLine(AT + at, "between", "stderr") + logLine(AT + at, `end ${at}`);
    appendFileSync(paths.log, text);
    const before = (await read({ tail: 100_000 })).lines;
    await host.keeper.look();
    appendFileSync(paths.log, logLine(AT + 1e9, "after"));
    await host.keeper.look();
    appendFileSync(paths.log, text.replaceAll("2026-01-01", "2026-01-03"));
    await host.keeper.look();
    assert.equal(archived().length, 1);
    const after = (await read({ tail: 100_000, until: AT + 1e6 })).lines;
    assert.deepEqual(after, before);
    assert.equal(before.find(({ stream }) => stream === "stdout")?.message, `${long}end 0`);
  });

  test("damage costs a block or a file, and is said once", async () => {
    const said: string[] = [];
    const host = keeping(KEPT_LOGS, { ...silentLog, warn: (_facts, text) => void said.push(text) });
    const { paths, read, archived } = host.machine("m1");
    await fill(host, paths.log, 3);
    const [one = "", two = ""] = archived().map((name) => join(paths.logs, name));
    const damage = (file: string, at: number): void => {
      const bytes = readFileSync(file);
      bytes.writeUInt8((bytes.at(at) ?? 0) ^ 0xff, at < 0 ? bytes.length + at : at);
      writeFileSync(file, bytes);
    };
    damage(one, 1000);
    damage(two, -30);
    const kept = numbers((await read({ tail: 10 * FILE_LINES })).lines);
    const [of_one, of_two, rest] = [0, 1, 2].map(
      (file) => kept.filter((n) => Math.floor(n / FILE_LINES) === file).length,
    );
    assert.ok((of_one ?? 0) > FILE_LINES * 0.9 && (of_one ?? 0) < FILE_LINES, `${of_one} of the first file`);
    assert.deepEqual([of_two, rest], [0, FILE_LINES]);
    await read({ tail: 10 * FILE_LINES });
    assert.deepEqual(
      said.map((text) => [one, two].findIndex((file) => text.includes(file))).toSorted((a, b) => a - b),
      [0, 1],
    );
  });

  test("logs past their age are deleted, and a quiet log is rotated so that it ages", async () => {
    const host = keeping();
    const { paths, read, archived } = host.machine("m1");
    await fill(host, paths.log, 2);
    // All lines are of long ago.
    await host.keeper.sweep();
    assert.equal(archived().length, 0);
    assert.deepEqual(numbers((await read({ tail: 1 })).lines), [2 * FILE_LINES + 9]);
    await host.keeper.look();
    assert.ok(existsSync(paths.log), "of today");
    // The file's own age counts, by the box's clock.
    const { birthtimeMs } = statSync(paths.log);
    await host.clock.advance(birthtimeMs + RUNC_LIMITS.log_rotated_ms + 1000 - host.clock.now());
    await host.keeper.look();
    assert.ok(!existsSync(paths.log));
  });

  test("one organization's flood deletes its own logs only, the oldest first", async () => {
    const now = Date.now();
    const flood = (from: number): string =>
      Array.from({ length: 40_000 }, (_, index) =>
        logLine(now + from + index, `${from + index} ${randomBytes(60).toString("base64")}`),
      ).join("");
    const host = keeping({ ms: KEPT_LOGS.ms, org_bytes: 8e6, host_bytes: 11e6 });
    const quiet = host.machine("m1", "quiet");
    const loud = host.machine("m2", "loud");
    appendFileSync(quiet.paths.log, flood(0));
    for (let round = 0; round < 6; round++) {
      appendFileSync(loud.paths.log, flood(round * 1e6));
      await host.keeper.look();
      for (const { paths } of [quiet, loud]) appendFileSync(paths.log, logLine(now + round * 1e6 + 9e5, "-1"));
    }
    await host.keeper.look();
    const bytes = ({ paths, archived }: typeof loud): number =>
      archived().reduce((sum, name) => sum + statSync(join(paths.logs, name)).size, 0);
    assert.equal(quiet.archived().length, 1);
    assert.ok(bytes(loud) <= 8e6 && bytes(loud) > 4e6, `${bytes(loud)}`);
    assert.ok(bytes(loud) + bytes(quiet) <= 11e6);
    const numbers_kept = loud.archived().map((name) => Number(name.slice(0, 8)));
    assert.equal(numbers_kept.at(-1), 6, "the newest is kept");
    assert.ok((numbers_kept[0] ?? 0) > 1, "the oldest is not");
  });

  test("a destroyed machine's log is archived as a whole, and read as before", async () => {
    const host = keeping({ ...KEPT_LOGS, ms: 3650 * 24 * 3600_000 });
    const { paths, read, names } = host.machine("m1");
    await fill(host, paths.log, 1);
    const { cursor } = await read({ tail: 0 });
    host.keeper.destroyed("m1");
    await host.keeper.sweep();
    assert.ok(names().includes("log"), "not at once: readers may be at its end");
    await host.clock.advance(RUNC_LIMITS.log_archived_after_ms + 60_000);
    await host.keeper.sweep();
    assert.deepEqual(
      names().map((name) => name.replace(/^\d{8}.*/, "archived")),
      ["archived", "archived", "destroyed", "owner"],
    );
    assert.deepEqual(numbers((await read({ tail: FILE_LINES })).lines), upTo(FILE_LINES + 10, 10));
    assert.deepEqual((await read({ cursor })).lines, []);
    await host.clock.advance(3651 * 24 * 3600_000);
    await host.keeper.sweep();
    assert.ok(!existsSync(paths.logs));
  });
});
