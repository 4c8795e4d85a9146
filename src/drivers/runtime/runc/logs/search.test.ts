/** Searches find what a reader of all lines would, in the order of time, page by page, over all kinds of files. */
import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { compileFilter, type LogFilter } from "#machines/logs/filter.ts";
import type { LogFound, LogKey, LogOrder, LogSearch } from "#machines/logs/search.ts";
import { random, runs, seed } from "../../../../../test/support.ts";
import { AT, logHost, logLine } from "./fixtures.ts";
import { LogKeeper } from "./log-keeper.ts";
import { readLog } from "./logs.ts";
import { searchLogs } from "./search.ts";

const MACHINES = ["m1", "m2", "m3"];
const LEVELS = ["info", "info", "info", "warn", "error", "debug"];

const pick = <T>(from: readonly T[], next: () => number): T => from[Math.floor(next() * from.length)] as T;

/** One line, or one of two parts. */
function someLine(at: number, next: () => number): string {
  const level = pick(LEVELS, next);
  const user = Math.floor(next() * 1000);
  const kind = next();
  if (kind < 0.002) return logLine(at, "é".repeat(5000), "stderr", "P") + logLine(at, " needle in the end", "stderr");
  if (kind < 0.5) return logLine(at, `${level.toUpperCase()} Plain words of user ${user} and Ünïcode`);
  const status = pick([200, 200, 404, 500], next);
  return logLine(at, JSON.stringify({ level, status, msg: "served", http: { user: `u${user}` }, pad: "x".repeat(40) }));
}

/** Machines whose logs have an archived, a rotated and a current file, with long lines and equal times. */
async function write(t: TestContext) {
  const next = random(seed(t));
  const host = logHost();
  const clock = virtualClock(AT);
  const keeper = new LogKeeper(host.layout, KEPT_LOGS, { clock, log: silentLog });
  let at = AT;
  for (const bytes of [4.4e6, 4.4e6, 4e5]) {
    for (const id of MACHINES) {
      let text = "";
      while (text.length < bytes) {
        if (next() < 0.7) at += Math.floor(next() * 3);
        text += someLine(at, next);
      }
      appendFileSync(host.machine(id).log, text);
    }
    await keeper.look();
  }
  const parts = { paths: (id: string) => host.machine(id), clock, onDamage: keeper.onDamage };
  const search = (wanted: Partial<LogSearch>): Promise<LogFound> =>
    searchLogs({ ids: MACHINES, filter: {}, order: "newest", limit: 100, ...wanted }, parts);
  const everything: { id: string; timestamp: number; message: string }[] = [];
  for (const id of MACHINES) {
    const { lines } = await readLog(host.machine(id), { tail: 1e9 }, keeper.onDamage);
    everything.push(...lines.map(({ timestamp, message }) => ({ id, timestamp, message })));
  }
  return { ...host, ...parts, keeper, search, everything, next, end: at };
}

type Written = Awaited<ReturnType<typeof write>>;

/** Written once: it is much. Tests that change it come last. */
let kept: Promise<Written> | undefined;
async function written(t: TestContext): Promise<Written> {
  kept ??= write(t);
  return await kept;
}

async function pages({ search }: Written, wanted: Partial<LogSearch>): Promise<LogFound["lines"]> {
  const lines: LogFound["lines"] = [];
  let after: LogKey | undefined;
  do {
    const found = await search({ ...wanted, ...(after ? { after } : {}) });
    lines.push(...found.lines);
    after = found.next;
  } while (after);
  return lines;
}

const FILTERS: LogFilter[] = [
  {},
  { text: "NEEDLE" },
  { text: "plain ünïcode 77" },
  { level: "error" },
  { level: "debug", text: "served" },
  { fields: ["status>=500", "level!=info"] },
  { fields: ["http.user=u77"] },
  { fields: ["level=warn"], text: "served" },
  { text: "is nowhere" },
];

suite("search in logs", () => {
  test("finds what reading everything finds, once and in order, in pages of any size", async (t) => {
    const log = await written(t);
    const span = log.end - AT;
    for (let round = 0; round < runs(1); round++) {
      for (const filter of FILTERS) {
        const order: LogOrder = log.next() < 0.5 ? "newest" : "oldest";
        const since = AT + Math.floor(log.next() * span);
        const until = since + Math.floor(log.next() * span * 0.05);
        const limit = 100 + Math.floor(log.next() * 2000);
        const found = await pages(log, { filter, order, since, until, limit });
        const { matches } = compileFilter(filter);
        const wanted = log.everything.filter(
          ({ timestamp, message }) => timestamp >= since && timestamp < until && matches(message),
        );
        const texts = (lines: readonly { timestamp: number; message: string }[]): string[] =>
          lines.map(({ timestamp, message }) => `${timestamp} ${message}`).sort();
        assert.deepEqual(texts(found), texts(wanted), JSON.stringify({ filter, order, since, until, limit }));
        const times = found.map(({ key }) => key.at);
        assert.deepEqual(times, order === "oldest" ? times.toSorted() : times.toSorted().reverse());
      }
    }
  });

  test("stops at its time with a place to go on, and gets to the end all the same", async (t) => {
    const log = await written(t);
    let now = AT;
    // Every look at the clock finds the time over.
    const clock = { ...log.clock, now: () => (now += MACHINE_LIMITS.logs_search_ms + 1) };
    const found: string[] = [];
    let requests = 0;
    let after: LogKey | undefined;
    do {
      const wanted = { ids: MACHINES, filter: { text: "needle" }, order: "oldest", limit: 1000 } as const;
      const page = await searchLogs({ ...wanted, ...(after ? { after } : {}) }, { ...log, clock });
      if (page.next && page.lines.length < 1000) assert.equal(page.stopped, "time");
      found.push(...page.lines.map(({ message }) => message));
      after = page.next;
      requests++;
    } while (after);
    const wanted = log.everything.filter(({ message }) => message.includes("needle"));
    assert.equal(found.length, wanted.length);
    assert.ok(found.length > 10 && requests > 5, `${found.length} lines in ${requests} requests`);
  });

  test("following goes on where a search ended, without a gap, a line twice or a prompt in the way", async (t) => {
    const log = await written(t);
    const { log: file } = log.machine("m1");
    appendFileSync(file, logLine(log.end, "a prompt> ", "stdout", "P") + logLine(log.end, "before", "stderr"));
    const found = await log.search({ limit: 1, filter: { text: "before" } });
    assert.equal(found.lines[0]?.message, "before");
    appendFileSync(file, logLine(log.end, "after", "stderr"));
    const read = (cursor: string) => readLog(log.machine("m1"), { cursor }, log.onDamage);
    const one = await read(found.ends["m1"] ?? "");
    assert.deepEqual(
      one.lines.map(({ message }) => message),
      ["after"],
    );
    assert.deepEqual((await read(one.cursor)).lines, [], "nothing twice while the prompt waits");
    appendFileSync(file, logLine(log.end, "yes"));
    const two = await read(one.cursor);
    assert.deepEqual(
      two.lines.map(({ message }) => message),
      ["a prompt> yes"],
    );
    assert.deepEqual((await read(two.cursor)).lines, []);
  });

  test("names the machines whose logs are damaged, and finds the rest", async (t) => {
    const log = await written(t);
    const { logs } = log.machine("m2");
    const [name = ""] = readdirSync(logs)
      .filter((each) => each.endsWith(".zst"))
      .sort();
    const bytes = readFileSync(join(logs, name));
    bytes.fill(0, bytes.length - 20);
    writeFileSync(join(logs, name), bytes);
    const { damaged, lines } = await log.search({ filter: { text: "needle" }, order: "oldest", limit: 10_000 });
    assert.deepEqual(damaged, ["m2"]);
    assert.ok(
      lines.some(({ key }) => key.id === "m2"),
      "of its other files",
    );
  });
});
