/** Secrets are compared in constant time, by construction: every comparison of one in the code is of that kind. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { sameSecret } from "#core/same-secret.ts";

const root = join(import.meta.dirname, "..");
const files = globSync("src/**/*.ts", { cwd: root }).filter((file) => !/\.(test|suite)\.ts$|fixtures\.ts$/.test(file));
const sourceOf = (file: string): string => readFileSync(join(root, file), "utf8");

/** Names that hold what a caller must not find out byte by byte. */
const SECRET = String.raw`(?:\w*(?:secret|signature|password|passphrase|hmac|nonce|proof|authorization)|(?:\w+_)?(?:token|mac|psk))`;
const SIDE = String.raw`(?:\w+\??\.)*#?${SECRET}`;
/** Whether it is there, or is a word of the program's own, may be asked in any way. */
const HARMLESS = String.raw`(?:undefined|null|true|false|\d|"[^"]*")`;
const COMPARED = new RegExp(
  String.raw`(?<![\w.#])(?<!typeof )${SIDE}\s*[!=]==(?!\s*${HARMLESS})[^;\n]*|[!=]==\s*${SIDE}\b(?!\s*\?\?|\w|\.|\()[^;\n]*`,
  "g",
);

/** Comparisons that are not of what a caller sends with what it should be, each with the reason. */
const KNOWN: Record<string, string> = {
  "src/alerts/prometheus-routes.ts: === group_next_token)":
    "where a page of rules begins: whoever asks may read them all",
  "src/machines/lifecycle/lease.ts: end?.nonce !== lease.nonce": "what is remembered of a lease with the lease itself",
};

suite("secret comparison", () => {
  test("sameSecret compares secrets of any length", () => {
    assert.ok(sameSecret("abc", Buffer.from("abc")));
    for (const other of ["", "abd", "ab", "abcd", "ABC"]) assert.ok(!sameSecret("abc", other), other);
  });

  test("no code compares secrets with ===", () => {
    const found = files.flatMap((file) => [...sourceOf(file).matchAll(COMPARED)].map(([text]) => `${file}: ${text}`));
    const unknown = found.filter((text) => !Object.keys(KNOWN).some((known) => text.startsWith(known)));
    assert.deepEqual(unknown, []);
    assert.equal(found.length, Object.keys(KNOWN).length, "the list has no obsolete entries");
  });

  test("control: the search finds such a comparison", () => {
    for (const text of [
      "if (given.secret === known.secret) return true;",
      "const right = signature !== expected;",
      "return token === this.#token;",
      "return expected === request.headers.authorization;",
    ])
      assert.ok([...text.matchAll(COMPARED)].length > 0, text);
  });

  test("timingSafeEqual is used where lengths are fixed, and by sameSecret for the rest", () => {
    const users = files.filter((file) => sourceOf(file).includes("timingSafeEqual(")).sort();
    assert.deepEqual(users, [
      "src/auth/tokens.ts",
      "src/core/macaroon.ts",
      "src/core/same-secret.ts",
      "src/hosts/join.ts",
    ]);
  });
});
