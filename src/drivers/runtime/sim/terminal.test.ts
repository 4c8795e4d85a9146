import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { until } from "../../../../test/support.ts";
import { SimTerminals } from "./terminal.ts";

const LAST = 50_000;

test("unread input does not stop a simulated terminal's output", async () => {
  const run = async () => ({ exit_code: 0, stdout: "", stderr: "" });
  const wanted = { command: ["seq", String(LAST)], rows: 24, cols: 80, term: "dumb" };
  const { stream, ended } = new SimTerminals().open("m1", wanted, run, systemClock);
  await until("there is no more room", () => stream.readableLength >= stream.readableHighWaterMark);
  for (const key of "abc") stream.write(key);
  const shown = await text(stream);
  assert.match(shown, new RegExp(`\\b${LAST}\r\n`));
  assert.deepEqual(await ended, { exit_code: 0 });
});
