/** Event streams of the dashboard that break: reopened at once, and only reported as broken when that fails. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { again } from "../web/again.ts";

/** What happens in each round; the stream is wanted no more after the last. */
async function told(rounds: readonly ("breaks" | "refused")[]): Promise<number> {
  const ending = new AbortController();
  let [at, broken] = [0, 0];
  const round = async (alive: () => void): Promise<void> => {
    const what = rounds[at++];
    if (at > rounds.length) return ending.abort();
    if (what === "breaks") alive();
    throw new TypeError("network error");
  };
  await again({ round, broken: () => void broken++ }, ending.signal);
  return broken;
}

suite("reconnecting streams of the dashboard", () => {
  test("a stream that reconnects is not reported", async () => {
    assert.equal(await told(["breaks", "breaks", "breaks"]), 0);
  });

  test("a stream that does not reconnect is reported as broken", async () => {
    assert.equal(await told(["breaks", "refused", "breaks"]), 1);
  });
});
