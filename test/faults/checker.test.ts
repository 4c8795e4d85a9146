/** The checker of histories: what it must accept, and what it must refuse. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { check, problemsOf, statesAtEnd } from "./checker.ts";
import { History, type Operation } from "./history.ts";

type Given = Partial<Operation> & Pick<Operation, "kind">;

/** `[from, to]` are the two ends of an operation. */
const op = (given: Given, [invoked, ended]: [number, number]): Operation => ({
  process: "c1",
  key: "x",
  outcome: "ok",
  ...given,
  invoked,
  ended,
});
const write = (value: string, at: [number, number], more: Partial<Operation> = {}) =>
  op({ kind: "write", value, ...more }, at);
const read = (value: string | undefined, at: [number, number], more: Partial<Operation> = {}) =>
  op({ kind: "read", value, ...more }, at);
const lease = (value: string, at: [number, number], more: Partial<Operation> = {}) =>
  op({ kind: "acquire", value, ttl_ms: 100, ...more }, at);
const problems = (operations: Operation[], down: { process: string; from: number; to: number }[] = []): string[] =>
  problemsOf(check(operations, { down, answer_ms: 1000 }));

const ACCEPTED: Record<string, Operation[]> = {
  "nothing was written": [read(undefined, [0, 1])],
  "a read after a write": [write("a", [0, 1]), read("a", [2, 3])],
  "a read during a write sees the old or the new": [
    write("a", [0, 1]),
    write("b", [2, 10]),
    read("a", [3, 4]),
    read("b", [5, 6]),
    read("b", [11, 12]),
  ],
  "a write that was left open happens long afterwards": [
    write("a", [0, 1], { outcome: "unknown" }),
    write("b", [2, 3]),
    read("b", [4, 5]),
    read("a", [100, 101]),
  ],
  "a write that was left open never happens": [
    write("a", [0, 1]),
    write("b", [2, 3], { outcome: "unknown" }),
    read("a", [4, 5]),
  ],
  "two writes at once, in the order that reads say": [
    write("a", [0, 10]),
    write("b", [0, 10]),
    read("b", [11, 12]),
    read("b", [13, 14]),
  ],
  "a refused write is never seen": [write("a", [0, 1]), write("b", [2, 3], { outcome: "fail" }), read("a", [4, 5])],
  "registers are apart": [write("a", [0, 1]), write("b", [2, 3], { key: "y" }), read("a", [4, 5])],
  "a lease after the time of the one before": [lease("a", [0, 10]), lease("b", [90, 120])],
  "a lease after the one before was given back": [
    lease("a", [0, 10]),
    op({ kind: "release", value: "a" }, [20, 25]),
    lease("b", [21, 30]),
  ],
  "a list during a create": [
    op({ kind: "create", value: "m1" }, [0, 10]),
    op({ kind: "list", values: [] }, [5, 6]),
    op({ kind: "list", values: ["m1"] }, [11, 12]),
  ],
};

const REFUSED: Record<string, [Operation[], RegExp]> = {
  "a lost write": [
    [write("a", [0, 1]), write("b", [2, 3]), read("a", [4, 5])],
    /"b" came after "a", which was there again/,
  ],
  "all writes are lost": [
    [write("a", [0, 1]), read(undefined, [2, 3])],
    /"a" came after nothing, which was there again/,
  ],
  "a stale read at another process": [
    [write("a", [0, 1]), write("b", [2, 3]), read("b", [4, 5]), read("a", [6, 7], { process: "c2" })],
    /"a" and "b" were both in force/,
  ],
  "a read that goes back": [
    [write("a", [0, 1]), write("b", [2, 100]), read("b", [3, 4]), read("a", [5, 6])],
    /"b" came after "a", which was there again/,
  ],
  "a write that was left open comes and goes": [
    [write("a", [0, 1]), write("b", [2, 3], { outcome: "unknown" }), read("b", [4, 5]), read("a", [6, 7])],
    /"b" came after "a", which was there again/,
  ],
  "a refused write is seen": [[write("a", [0, 1], { outcome: "fail" }), read("a", [2, 3])], /"a", which was refused/],
  "a value from nowhere": [[read("z", [0, 1])], /"z", which nobody wrote/],
  "a value before it was written": [[read("a", [0, 1]), write("a", [2, 3])], /before it was written/],
  "a lease of two": [[lease("a", [0, 10]), lease("b", [20, 30], { process: "c2" })], /c1 gave a and c2 gave b/],
  "a lease that is given while another one lasts": [
    [lease("a", [0, 10]), lease("b", [11, 99], { ttl_ms: 20 })],
    /gave a and c1 gave b/,
  ],
  "a list without what was made": [
    [op({ kind: "create", value: "m1" }, [0, 1]), op({ kind: "list", values: [] }, [2, 3])],
    /does not list m1/,
  ],
  "a list with what nobody made": [[op({ kind: "list", values: ["m1"] }, [2, 3])], /which nobody asked for/],
  "a list that knows too early": [
    [op({ kind: "list", values: ["m1"] }, [0, 1]), op({ kind: "create", value: "m1" }, [2, 3])],
    /before it was asked for/,
  ],
  "an answer that takes too long": [[write("a", [0, 1001])], /c1 took 1001 ms/],
};

suite("history checker", () => {
  for (const [name, operations] of Object.entries(ACCEPTED))
    test(`the checker accepts: ${name}`, () => assert.deepEqual(problems(operations), []));

  for (const [name, [operations, expected]] of Object.entries(REFUSED))
    test(`the checker refuses: ${name}`, () => assert.match(problems(operations).join("\n"), expected));

  test("attempts at a create are judged by their process, not all of them as one answer", () => {
    const create = op({ kind: "create", value: "m1", process: "any" }, [0, 3000]);
    const attempt = (at: [number, number], process: string) => op({ kind: "attempt", value: "m1", process }, at);
    assert.deepEqual(problems([create, attempt([0, 900], "c1"), attempt([2500, 3000], "c2")]), []);
    assert.match(problems([create, attempt([0, 2000], "c1")]).join("\n"), /c1 took 2000 ms for attempt/);
  });

  test("a stopped process is not reported as late, another one is", () => {
    const down = [{ process: "c1", from: 500, to: 600 }];
    assert.deepEqual(problems([write("a", [0, 2000])], down), []);
    assert.equal(problems([write("a", [0, 2000], { process: "c2" })], down).length, 1);
    assert.equal(problems([write("a", [700, 2000])], down).length, 1);
  });

  test("a machine's final state follows its last acknowledged or unanswered command", () => {
    const stop = op({ kind: "stop", key: "m" }, [0, 1]);
    const start = op({ kind: "start", key: "m", outcome: "unknown" }, [2, 3]);
    assert.deepEqual(statesAtEnd([], "m", "started"), ["started"]);
    assert.deepEqual(statesAtEnd([stop], "m", "started"), ["stopped"]);
    assert.deepEqual(statesAtEnd([stop, start], "m", "started"), ["stopped", "started"]);
    assert.deepEqual(statesAtEnd([stop, { ...start, outcome: "fail" }], "m", "started"), ["stopped"]);
  });

  test("the recorder stores both ends of a call, and leaves one without a response open", async () => {
    const history = new History();
    await history.record({ kind: "write", process: "c1", key: "x", value: "a" }, async () => ({ outcome: "ok" }));
    await history.record({ kind: "write", process: "c1", key: "x", value: "b" }, () =>
      Promise.reject(new Error("cut")),
    );
    const [first, second] = history.operations;
    assert.ok(first && second && first.ended >= first.invoked && second.invoked >= first.ended);
    assert.deepEqual([first.outcome, second.outcome], ["ok", "unknown"]);
    const answer = Promise.withResolvers<{ outcome: "ok" }>();
    const third = history.record({ kind: "write", process: "c1", key: "x", value: "c" }, () => answer.promise);
    assert.deepEqual(
      history.soFar().map(({ value, outcome }) => [value, outcome]),
      [
        ["a", "ok"],
        ["b", "unknown"],
        ["c", "unknown"],
      ],
      "one without an answer yet may have been seen",
    );
    answer.resolve({ outcome: "ok" });
    await third;
    assert.deepEqual(history.soFar(), history.operations);
    const up = history.takeDown("c1");
    assert.equal(history.down[0]?.to, Number.POSITIVE_INFINITY);
    up();
    assert.ok((history.down[0]?.to ?? 0) < Number.POSITIVE_INFINITY);
  });
});
