import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText } from "./output.ts";

test("bytes are printed with two digits or as a whole number, never with an exponent", () => {
  const MB = 1024 ** 2;
  for (const [bytes, text] of [
    [0, "0 B"],
    [512.4, "512 B"],
    [1000, "0.98 KB"],
    [1.44 * MB, "1.4 MB"],
    [99.7 * MB, "100 MB"],
    [512 * MB, "512 MB"],
    [999.7 * MB, "0.98 GB"],
    [1234 * MB ** 2, "1234 TB"],
  ] as const)
    assert.equal(bytesText(bytes), text);
});
