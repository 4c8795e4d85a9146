import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { chosen } from "./pick.ts";
import { UsageError } from "./verb.ts";

const NAMES = [
  { name: "one", id: "7a01", about: "" },
  { name: "two", id: "8b02", about: "" },
  { name: "twin", id: "8c03", about: "" },
];

suite("choosing from a list", () => {
  test("an item is chosen by its number, name, id or a unique prefix", () => {
    for (const [answer, id] of [
      ["1", "7a01"],
      [" 3\n", "8c03"],
      ["two", "8b02"],
      ["8b02", "8b02"],
      ["on", "7a01"],
      ["8c", "8c03"],
    ] as const)
      assert.equal(chosen(NAMES, answer, "machine"), id, answer);
  });

  test("only a listed number counts as one: `1e1` is a prefix of an id", () => {
    const many = Array.from({ length: 60 }, (_, at) => ({
      name: `m${at + 1}`,
      id: `${at === 20 ? "1e1" : "a"}${at}`,
      about: "",
    }));
    assert.equal(chosen(many, "1e1", "machine"), "1e120");
    assert.equal(chosen(many, "50", "machine"), "a49");
    assert.throws(() => chosen(many, "51", "machine"), new UsageError("51 is none of them"));
  });

  test("a number outside the list is an error, even where an id begins with it", () => {
    for (const [answer, text] of [
      ["7", "7 is none of them"],
      ["0", "0 is none of them"],
      ["tw", "tw is more than one of them"],
      ["three", "three is none of them"],
      ["", "missing required argument 'machine'"],
    ] as const)
      assert.throws(() => chosen(NAMES, answer, "machine"), new UsageError(text), answer);
  });
});
