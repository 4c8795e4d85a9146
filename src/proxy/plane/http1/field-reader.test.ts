import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../../../test/support.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import { BadMessage } from "./bad-message.ts";
import { FieldReader } from "./field-reader.ts";
import { headEnd } from "./head.ts";

/** A header line, as RFC 9112 defines it, without what is obsolete: the reader must agree with this in everything. */
const FIELD =
  /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*((?:[\x21-\x7e\x80-\xff]+(?:[\t ]+[\x21-\x7e\x80-\xff]+)*)?)[\t ]*\r\n/y;

type Line = [name: string, value: string, line: string];

function defined(text: string): Line[] | undefined {
  const found: Line[] = [];
  for (let at = 0; at < text.length - 2; at = FIELD.lastIndex) {
    FIELD.lastIndex = at;
    const match = FIELD.exec(text);
    if (!match) return undefined;
    found.push([(match[1] ?? "").toLowerCase(), match[2] ?? "", match[0]]);
  }
  return found;
}

function read(text: string): Line[] | undefined {
  const fields = new FieldReader(Buffer.from(text, "latin1"), text, 0);
  const found: Line[] = [];
  try {
    while (fields.next()) found.push([fields.name.text, fields.value, fields.line]);
  } catch (thrown) {
    assert.ok(thrown instanceof BadMessage);
    return undefined;
  }
  return found;
}

const PARTS = [
  "Host",
  "x",
  "X-Y",
  ":",
  ": ",
  " ",
  "\t",
  "value",
  "a b",
  '"é"',
  "\r\n",
  "\r\n",
  "\r",
  "\n",
  "\0",
  "\x7f",
];

suite("header line parser", () => {
  test("the parser accepts exactly the header lines that the grammar defines", (t) => {
    const choose = random(seed(t));
    let good = 0;
    const rounds = runs(8000, 200_000);
    for (let round = 0; round < rounds; round++) {
      const parts = Array.from({ length: 1 + Math.floor(choose() * 12) }, () => {
        if (choose() < 0.05) return String.fromCharCode(Math.floor(choose() * 256));
        return choose() < 0.4 ? "Name: some value\r\n" : (PARTS[Math.floor(choose() * PARTS.length)] as string);
      });
      // A head is cut off behind its first empty line.
      const text = `${parts.join("").split("\r\n\r\n")[0]}\r\n\r\n`;
      if (text.startsWith("\r\n")) continue;
      const expected = defined(text);
      assert.deepEqual(read(text), expected, JSON.stringify(text));
      if (expected) good++;
    }
    t.diagnostic(`${rounds} heads, ${good} of them good`);
    assert.ok(good > rounds / 100, "some of it was good");
  });

  test("header names with the same hash, or in another case, are distinguished", () => {
    // Enough names that several share a table entry, twice.
    const names = Array.from({ length: PROXY_LIMITS.names_remembered * 2 }, (_, i) => `X-${i.toString(36)}`);
    for (const name of [...names, ...names.map((one) => one.toLowerCase()), ...names]) {
      assert.deepEqual(read(`${name}: 1\r\n\r\n`), [[name.toLowerCase(), "1", `${name}: 1\r\n`]]);
    }
    const long = `X-${"y".repeat(PROXY_LIMITS.name_remembered_bytes)}`;
    for (const name of [long, `${long}Z`]) assert.equal(read(`${name}:\r\n\r\n`)?.[0]?.[0], name.toLowerCase());
  });

  test("the end of the headers is found at the first empty line", (t) => {
    const choose = random(seed(t));
    for (let round = 0; round < runs(8000, 200_000); round++) {
      const letters = Array.from({ length: Math.floor(choose() * 40) }, () => "\r\n\r\na"[Math.floor(choose() * 5)]);
      const bytes = Buffer.from(letters.join(""), "latin1");
      assert.equal(headEnd(bytes), bytes.indexOf("\r\n\r\n"), JSON.stringify(bytes.toString("latin1")));
    }
  });
});
