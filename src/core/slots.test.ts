import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Slots } from "./slots.ts";

suite("concurrency slots", () => {
  test("a call over the limit waits, and calls run in order, also after one that failed", async () => {
    const slots = new Slots(2);
    const ends = new Map<string, (failed?: Error) => void>();
    const begin = (name: string): Promise<string> =>
      slots.use(() => new Promise((resolve, reject) => ends.set(name, (e) => (e ? reject(e) : resolve(name)))));
    const running = ["a", "b", "c", "d", "e"].map(begin);
    const begun = async (): Promise<string> => {
      await new Promise(setImmediate);
      return [...ends.keys()].join("");
    };
    assert.equal(await begun(), "ab");
    ends.get("b")?.();
    assert.equal(await begun(), "abc");
    const late = begin("f");
    ends.get("a")?.(new Error("it went wrong"));
    await assert.rejects(running[0] ?? late, /it went wrong/);
    assert.equal(await begun(), "abcd");
    for (const name of ["c", "d"]) ends.get(name)?.();
    assert.equal(await begun(), "abcdef");
    for (const name of ["e", "f"]) ends.get(name)?.();
    assert.deepEqual(await Promise.all([...running.slice(1), late]), ["b", "c", "d", "e", "f"]);
    // All slots are free again: two calls run at once, and a third one waits.
    const more = ["g", "h", "i"].map(begin);
    assert.equal(await begun(), "abcdefgh");
    for (const name of ["g", "h"]) ends.get(name)?.();
    assert.equal(await begun(), "abcdefghi");
    ends.get("i")?.();
    await Promise.all(more);
  });

  test("a waiting call that is aborted leaves the queue and takes no slot; a running one goes on", async () => {
    const slots = new Slots(1);
    const stop = new AbortController();
    const { promise: first, resolve: end } = Promise.withResolvers<string>();
    const running = slots.use(() => first, stop.signal);
    const waiting = slots.use(() => assert.fail("it was aborted"), stop.signal);
    const next = slots.use(() => Promise.resolve("next"));
    stop.abort(new Error("revoked"));
    await assert.rejects(waiting, /revoked/);
    await assert.rejects(
      slots.use(() => assert.fail("it was aborted before"), stop.signal),
      /revoked/,
    );
    end("first");
    assert.deepEqual(await Promise.all([running, next]), ["first", "next"]);
    assert.equal(await slots.use(() => Promise.resolve("free again")), "free again");
  });
});
