import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { nodeAddress } from "./flags.ts";

suite("a node's address", () => {
  test("is that of an HTTP server, and what is none is named", () => {
    assert.equal(nodeAddress("--join", "http://10.0.0.1:20202/"), "http://10.0.0.1:20202");
    assert.equal(nodeAddress("--join", "http://[::1]:20202"), "http://[::1]:20202");
    for (const text of ["", "nonsense", "localhost:20202", "10.0.0.1:20202", "https://10.0.0.1"])
      assert.throws(() => nodeAddress("--join", text), {
        message: `--join is a node's address such as http://127.0.0.1:20202, not ${JSON.stringify(text)}`,
      });
  });
});
