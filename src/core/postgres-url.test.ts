import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { parsePostgresUrl } from "./postgres-url.ts";

suite("postgres url", () => {
  const parsed: [string, string[], string][] = [
    ["postgres://u:p@db/name", ["postgres://u:p@db/name"], "any"],
    ["postgresql://db:6543/name?sslmode=require", ["postgresql://db:6543/name?sslmode=require"], "any"],
    ["postgres://u@a:1,b/name", ["postgres://u@a:1/name", "postgres://u@b/name"], "read-write"],
    ["postgres://u@[::1]:1,[::2]/n?x=1", ["postgres://u@[::1]:1/n?x=1", "postgres://u@[::2]/n?x=1"], "read-write"],
    ["postgres://u@a,b/n?target_session_attrs=any", ["postgres://u@a/n", "postgres://u@b/n"], "any"],
    ["postgres://u@a/n?target_session_attrs=primary", ["postgres://u@a/n"], "read-write"],
    [
      "postgres://u@/n?host=/run/a,/run/b&port=1,2",
      ["postgres://u@/n?host=%2Frun%2Fa&port=1", "postgres://u@/n?host=%2Frun%2Fb&port=2"],
      "read-write",
    ],
  ];
  for (const [url, urls, target] of parsed)
    test(`${url} parses to ${urls.length} hosts with target ${target}`, () =>
      assert.deepEqual(parsePostgresUrl(url), { urls, target }));

  const refused: [string, RegExp][] = [
    ["mysql://db/name", /only postgres:/],
    ["postgres://u:secret@a,,b/n", /one of the hosts .* is empty/],
    ["postgres://u:secret@a/n?target_session_attrs=standby", /one of any, read-write, primary/],
    ["postgres://u:secret@/n?host=a,b,c&port=1,2", /3 hosts and 2 ports/],
  ];
  for (const [url, words] of refused)
    test(`${url} is refused without showing its password`, () =>
      assert.throws(
        () => parsePostgresUrl(url),
        (thrown) => {
          assert.ok(thrown instanceof Error);
          assert.match(thrown.message, words);
          return !thrown.message.includes("secret");
        },
      ));
});
