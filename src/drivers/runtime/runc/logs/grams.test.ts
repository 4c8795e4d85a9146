/** Grams never hide a text, and leave out most blocks that do not have it. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../../../../test/support.ts";
import { AT, logLine } from "./fixtures.ts";
import { gramsOf, mayContain, wantedGrams } from "./grams.ts";

const LINES = 1200;

function block(next: () => number): { bytes: Buffer; messages: string[] } {
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join("");
  const messages = Array.from(
    { length: LINES },
    (_, n) => `${hex(8)}-${hex(4)}-${hex(12)} GET /api/Items/${Math.floor(next() * 1e6)} ${n} größe ${next()}`,
  );
  return { bytes: Buffer.from(messages.map((message, n) => logLine(AT + n, message)).join("")), messages };
}

const has = (set: Buffer, ...texts: string[]): boolean => mayContain(set, wantedGrams(texts));

suite("grams of log blocks", () => {
  test("a block with a text is never left out, in upper or lower case and inside of words", (t) => {
    const next = random(seed(t));
    const { bytes, messages } = block(next);
    const set = gramsOf(bytes);
    assert.ok(set.length <= bytes.length / 32, `${set.length} bytes for ${bytes.length}`);
    for (let run = 0; run < runs(2000); run++) {
      const message = messages[Math.floor(next() * messages.length)] as string;
      const from = Math.floor(next() * message.length);
      const text = message.slice(from, from + 1 + Math.floor(next() * 40)).replace(/[^\x20-\x7e]/g, "");
      if (message.includes(text)) assert.ok(has(set, text.toUpperCase()) && has(set, text), text);
    }
  });

  test("ids of other blocks are left out, nearly always", (t) => {
    const next = random(seed(t));
    const [one, other] = [block(next), block(next)];
    const set = gramsOf(one.bytes);
    const found = other.messages.filter((message) => has(set, message.slice(0, 26))).length;
    t.diagnostic(`${found} of ${LINES} ids of another block`);
    assert.ok(found < LINES / 20, `${found}`);
  });

  test("text that goes on in the next part of a line of the same stream is found", () => {
    const parts = [
      logLine(AT, "begin request-4", "stdout", "P"),
      logLine(AT, "of the other stream", "stderr", "P"),
      logLine(AT, "711 ends"),
      logLine(AT, " goes on", "stderr"),
      logLine(AT, "own line"),
    ];
    const set = gramsOf(Buffer.from(parts.join("")));
    assert.ok(has(set, "request-4711 ends", "other stream goes on", "own line"));
    assert.ok(!has(set, "711 ends goes on and own line of another block"));
  });
});
