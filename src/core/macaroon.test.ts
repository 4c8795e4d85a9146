import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { runs, seed } from "../../test/support.ts";
import { type AccessRequest, ALL_ACTIONS, type Caveat, refusal, toWire } from "./caveats.ts";
import { LIMITS } from "./limits.ts";
import { attenuate, isGenuine, MacaroonError, mint, parse, serialize } from "./macaroon.ts";

const key = Buffer.alloc(32, 7);
const NOW = 1_700_000_000_000;

const name = fc.constantFrom("web", "api", "db", "personal", "acme", "148e21ea7e46e8");
const actions = fc.integer({ min: 0, max: ALL_ACTIONS });
const leaf: fc.Arbitrary<Caveat> = fc.oneof(
  fc.record({ type: fc.constant("org" as const), org: name, actions }),
  fc.record({ type: fc.constant("actions" as const), actions }),
  fc.record({ type: fc.constant("apps" as const), apps: fc.dictionary(name, actions, { minKeys: 1 }) }),
  fc.record({ type: fc.constant("machines" as const), machines: fc.dictionary(name, actions, { minKeys: 1 }) }),
  fc.record({
    type: fc.constant("validity" as const),
    not_before_s: fc.integer({ min: 0, max: 3e9 }),
    not_after_s: fc.integer({ min: 0, max: 3e9 }),
  }),
  fc.record({ type: fc.constant("from_machine" as const), machine: name }),
);
const caveat: fc.Arbitrary<Caveat> = fc.oneof(
  { weight: 5, arbitrary: leaf },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("any" as const),
      of: fc.array(fc.array(leaf, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
    }),
  },
);
const wish: fc.Arbitrary<AccessRequest> = fc.record(
  {
    action: fc.constantFrom(
      "read" as const,
      "write" as const,
      "create" as const,
      "delete" as const,
      "control" as const,
    ),
    org: name,
    app: name,
    machine: name,
    from_machine: name,
    now_ms: fc.integer({ min: 0, max: 3e12 }),
  },
  { requiredKeys: ["action", "now_ms"] },
);

suite("macaroons", () => {
  test("a token survives serialization and verifies with its own key only", (t) => {
    fc.assert(
      fc.property(fc.array(caveat, { maxLength: 6 }), (caveats) => {
        const token = mint(key, "01TOKEN", caveats);
        const back = parse(serialize(token));
        assert.deepEqual(back.caveats.map(toWire), token.caveats.map(toWire));
        assert.ok(isGenuine(key, back));
        assert.ok(!isGenuine(Buffer.alloc(32, 8), back));
      }),
      { seed: seed(t), numRuns: runs(500, 5000) },
    );
  });

  test("the holder can attenuate a token without the key", () => {
    const token = mint(key, "01TOKEN", [{ type: "org", org: "acme", actions: ALL_ACTIONS }]);
    const narrower = attenuate(parse(serialize(token)), [{ type: "actions", actions: 1 }]);
    assert.ok(isGenuine(key, parse(serialize(narrower))));
    const read: AccessRequest = { action: "read", org: "acme", now_ms: NOW };
    assert.equal(refusal(narrower.caveats, read), undefined);
    assert.match(
      refusal(narrower.caveats, { ...read, action: "write" }) ?? "",
      /caveat actions.*allows read.*needs write/,
    );
  });

  test("adding a caveat never widens access (A3)", (t) => {
    fc.assert(
      fc.property(fc.array(caveat, { maxLength: 5 }), caveat, wish, (caveats, more, wanted) => {
        if (refusal(caveats, wanted) !== undefined) assert.notEqual(refusal([...caveats, more], wanted), undefined);
      }),
      { seed: seed(t), numRuns: runs(1500, 40_000) },
    );
  });

  test("no modified token verifies: flipped bits, dropped, moved and spliced caveats (A2)", (t) => {
    const other = mint(key, "01OTHER", [{ type: "org", org: "acme", actions: ALL_ACTIONS }]);
    fc.assert(
      fc.property(
        fc.array(caveat, { minLength: 1, maxLength: 5 }),
        fc.nat(),
        fc.nat(7),
        fc.nat(4),
        (caveats, place, bit, how) => {
          const token = mint(key, "01TOKEN", caveats);
          const mutated = mutate(serialize(token), token, other, place, bit, how);
          if (mutated === serialize(token)) return;
          let genuine = false;
          try {
            const back = parse(mutated);
            genuine =
              isGenuine(key, back) && JSON.stringify(back.caveats.map(toWire)) !== JSON.stringify(caveats.map(toWire));
          } catch (thrown) {
            assert.ok(thrown instanceof MacaroonError, String(thrown));
          }
          assert.ok(!genuine);
        },
      ),
      { seed: seed(t), numRuns: runs(1500, 40_000) },
    );
  });

  test("a caveat of an unknown type keeps its place in the chain and refuses", () => {
    const token = mint(key, "01TOKEN", [{ type: "unknown", wire: [99, "later"] }]);
    const back = parse(serialize(token));
    assert.ok(isGenuine(key, back));
    assert.match(refusal(back.caveats, { action: "read", now_ms: NOW }) ?? "", /does not know/);
  });

  test("text that is not a token is refused with a clear error", () => {
    const { tail } = mint(key, "01TOKEN", []);
    const packed = (value: unknown): string =>
      `hm1_${Buffer.from(encode(value, { maxDepth: 1000 })).toString("base64url")}`;
    const deep = Array.from({ length: 200 }).reduce<unknown>((inner) => [inner], 1);
    const good = serialize(mint(key, "01TOKEN", []));
    // The last letter of a text whose bytes are not a multiple of three has bits that mean nothing.
    const spare = serialize(mint(key, "01TOKENSX", []));
    assert.equal(Buffer.from(spare.slice(4), "base64url").length % 3, 1);
    const spelled = spare.slice(0, -1) + String.fromCharCode(spare.charCodeAt(spare.length - 1) + 1);
    const refused: [text: string, why: RegExp][] = [
      [good.slice(4), /starts with hm1_/],
      [`hm2_${good.slice(4)}`, /starts with hm1_/],
      ["hm1_", /cut off or has a stray character/],
      [`hm1_$${good.slice(4)}`, /cut off or has a stray character/],
      [`${good}$`, /cut off or has a stray character/],
      [good.slice(0, -3), /cut off or damaged/],
      [spelled, /damaged/],
      [packed("text"), /the token is damaged/],
      [packed({ length: 3 }), /the token is damaged/],
      [packed(["01TOKEN", []]), /the token is damaged/],
      [packed(["01TOKEN", [], tail, 1]), /the token is damaged/],
      [packed([1, [], tail]), /the token is damaged/],
      [packed(["01TOKEN", {}, tail]), /the token is damaged/],
      [packed(["01TOKEN", [], "tail"]), /the token is damaged/],
      [packed(["01TOKEN", [[99, deep]], tail]), /the token is damaged/],
      [packed(["01TOKEN", [], Buffer.alloc(65)]), /cut off or damaged/],
    ];
    for (const [text, why] of refused) {
      assert.throws(
        () => parse(text),
        (error: unknown) => {
          assert.ok(error instanceof MacaroonError, `${text}: ${String(error)}`);
          assert.match(error.message, why, text);
          return true;
        },
      );
    }
    assert.throws(
      () => parse(good.slice(0, -3)),
      (error: Error) => error.cause instanceof Error,
    );
  });

  test("a signature of another length does not verify and does not throw", () => {
    const token = mint(key, "01TOKEN", []);
    for (const length of [0, 31, 33]) assert.equal(isGenuine(key, { ...token, tail: Buffer.alloc(length) }), false);
    const short = parse(serialize({ ...token, tail: token.tail.subarray(0, 31) }));
    assert.equal(isGenuine(key, short), false);
  });

  test("a token with exactly the maximum of caveats and bytes is accepted", () => {
    const most = Array.from({ length: LIMITS.token_caveats }, () => ({ type: "actions" as const, actions: 1 }));
    assert.ok(isGenuine(key, parse(serialize(mint(key, "01TOKEN", most)))));
    assert.throws(() => parse(`hm1_${"A".repeat(LIMITS.token_bytes - 4)}`), /damaged/);
  });

  test("too many caveats, too many bytes and too deep nesting are refused", () => {
    const many = mint(
      key,
      "01TOKEN",
      Array.from({ length: 33 }, () => ({ type: "actions" as const, actions: 1 })),
    );
    assert.throws(() => parse(serialize(many)), /at most 32 caveats/);
    assert.throws(() => parse(`hm1_${"A".repeat(9000)}`), /at most 8192/);
    let deep: Caveat = { type: "actions", actions: ALL_ACTIONS };
    for (let i = 0; i < 6; i++) deep = { type: "any", of: [[deep]] };
    const back = parse(serialize(mint(key, "01TOKEN", [deep])));
    assert.notEqual(refusal(back.caveats, { action: "read", now_ms: NOW }), undefined);
  });
});

function mutate(
  text: string,
  token: ReturnType<typeof mint>,
  other: ReturnType<typeof mint>,
  place: number,
  bit: number,
  how: number,
): string {
  const bytes = Buffer.from(text.slice(4), "base64url");
  const at = place % bytes.length;
  switch (how) {
    case 0:
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << bit), at);
      return `hm1_${bytes.toString("base64url")}`;
    case 1:
      return serialize({ ...token, caveats: token.caveats.toSpliced(place % token.caveats.length, 1) });
    case 2:
      return serialize({ ...token, caveats: token.caveats.toReversed() });
    case 3:
      return serialize({ ...token, tail: other.tail });
    default:
      return text.slice(0, 4 + (place % (text.length - 4)));
  }
}
