/** Compares the schema builders and the validator with TypeBox, whose names and types they have. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import TypeBox, { type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import * as apps from "#apps/schema.ts";
import * as auth from "#auth/schema.ts";
import * as machines from "#machines/api/schema.ts";
import * as config from "#machines/config/config-schema.ts";
import { runs, seed } from "../../test/support.ts";
import type { JsonSchema } from "./json-schema.ts";
import { Type } from "./schema.ts";
import { problems } from "./validate.ts";

type Builders = typeof Type;

/** Every builder, alone and within others. */
function samples(T: Builders): TSchema[] {
  const { String: text, Integer: integer } = T;
  return [
    T.Array(T.Number({ minimum: 0 }), { maxItems: 2 }),
    T.Literal("a"),
    T.Literal(5),
    T.Object({}),
    T.Object({ a: text({ description: "d" }), b: T.Optional(T.Boolean()), c: T.Unknown() }),
    T.Object({ a: T.Optional(integer()) }, { additionalProperties: false, description: "d" }),
    T.Partial(T.Object({ a: text(), b: T.Optional(T.Null()) })),
    T.Record(text(), integer(), { description: "d" }),
    T.Record(text({ pattern: "^a$" }), T.Unknown()),
    T.Union([text(), T.Null(), T.Literal("x")], { description: "d" }),
    T.Unsafe<"a">(T.Union([T.Literal("a")])),
    T.Optional(T.Union([text({ minLength: 1, maxLength: 3, pattern: "^[a-c]+$" }), integer({ multipleOf: 4 })])),
  ];
}

const isSchema = (value: unknown): value is TSchema =>
  typeof value === "object" && value !== null && ("type" in value || "anyOf" in value);
const ours = [auth, apps, machines, config].flatMap((room) => Object.values(room).filter(isSchema));

/** Values that mostly match, with some that do not. */
function values(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: fitting(schema) }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) });
}

const texts = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: "binary", maxLength: 12 }), fc.constant("/a-1"));
const numbers = fc.oneof(fc.integer({ min: -2, max: 70_000 }), fc.constantFrom(0, 256, 512, 1.5));

function fitting(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(values));
  if ("const" in schema) return fc.constant(schema.const);
  switch (schema.type) {
    case "string":
      return texts;
    case "integer":
    case "number":
      return numbers;
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(values(schema.items ?? {}), { maxLength: 3 });
    case "object":
      return objects(schema);
    default:
      return fc.jsonValue({ maxDepth: 1 });
  }
}

function objects({ properties = {}, patternProperties = {} }: JsonSchema): fc.Arbitrary<unknown> {
  const known = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, values(one)]));
  const [any] = Object.values(patternProperties);
  const more = any ? fc.dictionary(texts, values(any), { maxKeys: 3 }) : fc.constant({});
  return fc.tuple(more, fc.record(known, { requiredKeys: [] })).map(([first, second]) => ({ ...first, ...second }));
}

suite("schemas", () => {
  test("schemas serialize as TypeBox's do", () => {
    const theirs = samples(TypeBox).map((schema) => JSON.stringify(schema));
    assert.deepEqual(
      samples(Type).map((schema) => JSON.stringify(schema)),
      theirs,
    );
  });

  test("schemas accept and reject the same values as TypeBox's", (t) => {
    const start = seed(t);
    assert.ok(ours.length > 40);
    const tally = { good: 0, bad: 0 };
    for (const schema of [...samples(Type), ...ours]) {
      const theirs = Compile(schema);
      const agree = (value: unknown): void => {
        const good = theirs.Check(value);
        tally[good ? "good" : "bad"]++;
        const said = problems(schema, value, "body");
        assert.equal(said.length === 0, good, `${JSON.stringify(value)}: ${JSON.stringify(said)}`);
      };
      fc.assert(fc.property(values(schema as JsonSchema), agree), { numRuns: runs(60), seed: start });
    }
    assert.ok(tally.good > 500 && tally.bad > 500, JSON.stringify(tally));
  });

  test("a map's schema checks every key, also one with a line break", () => {
    const map = Type.Record(Type.String(), Type.String()) as JsonSchema;
    for (const name of ["a", "", "a\nb", "\u2028", "\r"]) {
      assert.equal(problems(map, { [name]: {} }, "body").length, 1, JSON.stringify(name));
    }
  });

  test("schemas use only keywords that the validator implements", () => {
    const known = new Set(
      "type properties required additionalProperties patternProperties anyOf const items minItems maxItems minLength maxLength pattern minimum maximum multipleOf title description x-support x-go-name".split(
        " ",
      ),
    );
    const visit = (schema: JsonSchema): string[] => [
      ...Object.keys(schema).filter((keyword) => !known.has(keyword)),
      ...[
        ...Object.values(schema.properties ?? {}),
        ...Object.values(schema.patternProperties ?? {}),
        ...(schema.anyOf ?? []),
        ...(schema.items ? [schema.items] : []),
      ].flatMap(visit),
    ];
    assert.deepEqual(
      ours.flatMap((schema) => visit(schema as JsonSchema)),
      [],
    );
  });
});
