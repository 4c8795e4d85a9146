import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { VERBS } from "./postgres/verbs.ts";
import { type Context, numberOption, UsageError } from "./verb.ts";

const given = (options: Record<string, string>) => ({ args: ["ledger"], rest: [], options });

suite("numeric options", () => {
  test("a numeric option must be a whole number", () => {
    assert.equal(numberOption(given({ tail: "20" }), "tail"), 20);
    assert.equal(numberOption(given({}), "tail"), undefined);
    for (const text of ["", "many", "-1", "1.5", "0x10", "1e3"])
      assert.throws(
        () => numberOption(given({ tail: text }), "tail"),
        new UsageError(`--tail is a whole number, not ${text}`),
      );
  });

  test("a numeric option is checked before any request is sent", async () => {
    const called: string[] = [];
    const client = { call: async (route: string) => void called.push(route) };
    const context = { client } as unknown as Context; // No other field is used.
    const [create] = VERBS;
    assert(create);
    await assert.rejects(create.run(context, given({ memory: "1gb" })), UsageError);
    assert.deepEqual(called, []);
  });
});
