import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { collect, listTable } from "./lists.ts";
import type { Context, Input, Result } from "./verb.ts";

const PAGE = 500;

/** Pages of a list of `total` numbers, and how many of them were requested. */
function numbers(total: number): { pages: AsyncGenerator<number[]>; requested(): number } {
  let requested = 0;
  async function* pages(): AsyncGenerator<number[]> {
    for (let from = 0; from < total; from += PAGE) {
      requested++;
      yield Array.from({ length: Math.min(PAGE, total - from) }, (_, i) => from + i);
    }
  }
  return { pages: pages(), requested: () => requested };
}

async function listed(total: number, options: Input["options"]) {
  const said: string[] = [];
  const context = { say: (text: string) => void said.push(text) } as unknown as Context;
  const { pages, requested } = numbers(total);
  const input: Input = { args: [], rest: [], options };
  const result = await listTable(context, input, pages, { heads: ["n"], row: (n) => [String(n)], none: "none" });
  const at_once = requested();
  return { result, rows: await rowsOf(result), said, at_once, requested: requested() };
}

async function rowsOf({ text, more }: Result): Promise<number> {
  const [, ...first] = text.split("\n");
  const rest = more ? await collect(pagesIn(more)) : [];
  return [...first, ...rest].filter((line) => line !== "").length;
}

async function* pagesIn(texts: AsyncIterable<string>): AsyncGenerator<string[]> {
  for await (const text of texts) yield text.split("\n");
}

suite("lists on the command line", () => {
  test("a table begins with the first page, and the others follow as they arrive", async () => {
    const { rows, at_once, requested, said } = await listed(900, {});
    assert.deepEqual([rows, at_once, requested, said], [900, 1, 2, []]);
  });

  test("a table has 1,000 rows unless --all, and says when there are more", async () => {
    const cut = await listed(1600, {});
    assert.deepEqual([cut.rows, cut.said], [1000, ["only the first 1000 are shown; --all shows the rest"]]);
    const whole = await listed(1000, {});
    assert.deepEqual([whole.rows, whole.said], [1000, []]);
    const all = await listed(1600, { all: true });
    assert.deepEqual([all.rows, all.said], [1600, []]);
  });

  test("--limit requests no more pages than it needs", async () => {
    const { rows, requested, said } = await listed(1600, { limit: "500" });
    assert.deepEqual([rows, requested, said], [500, 1, []]);
    assert.equal((await listed(1600, { limit: "7" })).rows, 7);
  });

  test("--json prints the whole list", async () => {
    const { result } = await listed(1600, { json: true });
    assert.equal((result.data as number[]).length, 1600);
  });

  test('an empty list prints "none"', async () => {
    assert.equal((await listed(0, {})).result.text, "none");
  });

  test("--limit together with --all, or below 1, is a usage error", async () => {
    await assert.rejects(listed(1, { limit: "5", all: true }), /exclude each other/);
    await assert.rejects(listed(1, { limit: "0" }), /at least 1/);
    await assert.rejects(listed(1, { limit: "x" }), /whole number/);
  });
});
