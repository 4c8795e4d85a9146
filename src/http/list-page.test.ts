import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { inPages, type ListPage, pageHeaders, readPage, withNext } from "./list-page.ts";

type Words = ListPage<readonly [string]>;
const WORDS = { path: "/words", pages: inPages("words", ["text"]) };
const page = (query: Record<string, unknown>): Words => readPage(WORDS, query) as unknown as Words;
const word = (text: string): readonly [string] => [text];

suite("list pagination", () => {
  test("walking the pages yields every item once, in either order", () => {
    for (const order of ["ascending", "descending"] as const) {
      const found: string[] = [];
      for (let cursor: string | undefined = ""; cursor !== undefined; ) {
        const one: Words = page({ limit: 2, cursor });
        found.push(...one.of(["d", "b", "e", "a", "c"], word, order));
        cursor = one.next;
      }
      assert.equal(found.join(""), order === "ascending" ? "abcde" : "edcba");
    }
  });

  test("the last page has no next link", () => {
    const one = page({ limit: 2 });
    assert.deepEqual([one.take(["a", "b"], word), one.next], [["a", "b"], undefined]);
    assert.deepEqual(pageHeaders(one, "/words?limit=2"), {});
    assert.deepEqual(withNext({ words: [] }, one), { words: [] });
  });

  test("an item added or removed between two pages does not affect the others", () => {
    const first = page({ limit: 2 });
    first.of(["a", "b", "c", "d"], word);
    const second = page({ limit: 2, cursor: first.next });
    assert.deepEqual(second.of(["a", "aa", "c", "d"], word), ["c", "d"]);
  });

  test("a list without a limit is cut at list_items, and says so", () => {
    const one = readPage({ path: "/n", pages: inPages("", ["number"]) }, {}) as unknown as ListPage<readonly [number]>;
    const list = one.of(
      Array.from({ length: LIMITS.list_items + 1 }, (_, i) => i),
      (n) => [n],
    );
    assert.equal(list.length, LIMITS.list_items);
    const headers = pageHeaders(one, "/n");
    assert.match(headers["svc-warning"] ?? "", /only the first 10000 .*list_items/);
    assert.equal(headers["link"], `</n?cursor=${one.next}>; rel="next"`);
    assert.deepEqual(withNext(list, one), list);
  });

  test("the next link keeps the other parameters", () => {
    const one = page({ limit: 1 });
    one.of(["a", "b"], word);
    const { link } = pageHeaders(one, "/words?limit=1&metadata.k=a%20b&cursor=old");
    assert.equal(link, `</words?limit=1&metadata.k=a+b&cursor=${one.next}>; rel="next"`);
  });

  test("a cursor of another list, or none at all, is refused", () => {
    const other = readPage({ path: "/others", pages: WORDS.pages }, { limit: 1 }) as unknown as Words;
    other.of(["a", "b"], word);
    const raw = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const list = (JSON.parse(Buffer.from(nextOf(["a", "b"]), "base64url").toString()) as string[])[0];
    for (const cursor of [
      "odd",
      "!",
      other.next,
      raw({}),
      raw([list]),
      raw([list, 1]),
      raw([list, "a", "b"]),
      raw([list, "\0"]),
    ]) {
      assert.throws(() => page({ cursor }), /query.cursor is not a cursor of this list/, cursor);
    }
  });
});

function nextOf(items: string[]): string {
  const one = page({ limit: 1 });
  one.of(items, word);
  assert.ok(one.next);
  return one.next;
}
