/** Access rules (G2): 10,000 random policies against an independent reference implementation. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../test/support.ts";
import { hasPathRules, judge, policyWarnings } from "./policy.ts";
import type { AccessPolicy } from "./types.ts";

/** The rules in fifteen lines, for plain lower-case paths, where blocking folds nothing but a last slash. */
function reference(policy: AccessPolicy, name: string, labels: string[], path: string): boolean {
  const {
    allow_all = false,
    name_prefix = "",
    sprite_labels = [],
    allowed_endpoints = [],
    blocked_endpoints = [],
  } = policy;
  const named = name_prefix !== "" || sprite_labels.length > 0;
  const fits = name.indexOf(name_prefix) === 0 && sprite_labels.every((label) => new Set(labels).has(label));
  if (!allow_all && !(named && fits)) return false;
  const regexp = (pattern: string, end: string): RegExp => {
    const body = pattern.replace(/\*$/, "").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(`^${body.startsWith("/") ? "" : "/"}${body}${pattern.endsWith("*") ? "" : end}`);
  };
  const blocked = blocked_endpoints.some((p) => regexp(p.endsWith("*") ? p : p.replace(/\/$/, ""), "/?$").test(path));
  const allowed = allowed_endpoints.length === 0 || allowed_endpoints.some((p) => regexp(p, "$").test(path));
  return !blocked && allowed;
}

suite("access policies (G2)", () => {
  test("rules apply in order, with exact paths, wildcards and empty lists", () => {
    const allowed = (policy: AccessPolicy, path: string): boolean =>
      judge(policy, { name: "web-1", labels: ["a", "b"] }, path).allowed;
    const all = { allow_all: true };
    const cases: [AccessPolicy, string, boolean][] = [
      [{}, "/user", false],
      [{ name_prefix: "" }, "/user", false],
      [{ sprite_labels: [] }, "/user", false],
      [{ allow_all: false, name_prefix: "web-" }, "/user", true],
      [{ name_prefix: "web-", sprite_labels: ["a", "b"] }, "/user", true],
      [{ name_prefix: "web-", sprite_labels: ["a", "c"] }, "/user", false],
      [{ name_prefix: "db-", sprite_labels: ["a"] }, "/user", false],
      [{ ...all, name_prefix: "db-", sprite_labels: ["c"] }, "/user", true],
      [{ ...all, allowed_endpoints: ["/user"] }, "/user", true],
      [{ ...all, allowed_endpoints: ["/user"] }, "/user/repos", false],
      [{ ...all, allowed_endpoints: ["/user*"] }, "/user/repos", true],
      [{ ...all, allowed_endpoints: ["/user/*"] }, "/user", false],
      [{ ...all, allowed_endpoints: [] }, "/anything", true],
      [{ ...all, allowed_endpoints: ["*"] }, "/anything", true],
      [{ ...all, allowed_endpoints: ["*"], blocked_endpoints: ["/user"] }, "/user", false],
      [{ ...all, allowed_endpoints: ["/user"], blocked_endpoints: ["/user"] }, "/user", false],
      [{ ...all, blocked_endpoints: ["*"] }, "/user", false],
      [{ ...all, blocked_endpoints: ["/user"] }, "/user/repos", true],
      [{ ...all, blocked_endpoints: ["/repos/*/issues"] }, "/repos/a/issues", true],
      [{ ...all, blocked_endpoints: ["/admin"] }, "/ADMIN/", false],
      [{ ...all, allowed_endpoints: ["/admin"] }, "/ADMIN", false],
      [{ ...all, allowed_endpoints: ["user"] }, "/user", true],
    ];
    for (const [policy, path, want] of cases)
      assert.equal(allowed(policy, path), want, `${JSON.stringify(policy)} ${path}`);
    assert.equal(policyWarnings({ allow_all: true, allowed_endpoints: ["/a/*"] }).length, 0);
  });

  test("the verdict names the deciding rule and the reason", () => {
    const said = (policy: AccessPolicy, path: string): string[] => {
      const { rule, reason } = judge(policy, { name: "web-1", labels: ["a"] }, path);
      return [rule, reason];
    };
    const all = { allow_all: true };
    assert.deepEqual(said({}, "/a"), ["default", "connection denies all sprites by default: its policy names none"]);
    assert.deepEqual(said({ name_prefix: "db-" }, "/a"), [
      'name_prefix "db-"',
      'sprite name "web-1" does not start with "db-"',
    ]);
    assert.deepEqual(said({ sprite_labels: ["a", "b", "c"] }, "/a"), [
      'sprite_labels ["b","c"]',
      "sprite is missing required labels: b, c",
    ]);
    assert.deepEqual(said({ ...all, blocked_endpoints: ["/b", "/a*"] }, "/a/x"), [
      'blocked_endpoints[1] "/a*"',
      "endpoint not allowed: /a/x is blocked",
    ]);
    assert.deepEqual(said({ ...all, allowed_endpoints: ["/b"] }, "/a"), [
      "allowed_endpoints",
      "endpoint not allowed: /a is not one of the connector's allowed endpoints",
    ]);
    assert.deepEqual(said(all, "/a"), ["allow_all", "allowed by allow_all"]);
    assert.deepEqual(said({ name_prefix: "web", sprite_labels: ["a"], allowed_endpoints: ["/b", "/a"] }, "/a"), [
      'name_prefix, sprite_labels, allowed_endpoints[1] "/a"',
      'allowed by name_prefix, sprite_labels and allowed_endpoints[1] "/a"',
    ]);
    assert.deepEqual(said({ name_prefix: "web" }, "/a"), ["name_prefix", "allowed by name_prefix"]);
    assert.deepEqual(said({ sprite_labels: ["a"] }, "/a"), ["sprite_labels", "allowed by sprite_labels"]);
  });

  test("path rules are detected, and rules that can never apply give a warning", () => {
    assert.ok(!hasPathRules({}) && !hasPathRules({ allowed_endpoints: [], blocked_endpoints: [] }));
    assert.ok(hasPathRules({ allowed_endpoints: ["/a"] }) && hasPathRules({ blocked_endpoints: ["/a"] }));
    const warning = "no sprite may use this connector: set allow_all, name_prefix or sprite_labels";
    const never = (pattern: string): string => `"${pattern}" never matches: a * is a wildcard only at the end`;
    assert.deepEqual(policyWarnings({}), [warning]);
    assert.deepEqual(policyWarnings({ name_prefix: "web" }), []);
    assert.deepEqual(policyWarnings({ sprite_labels: ["a"] }), []);
    assert.deepEqual(
      policyWarnings({ allow_all: true, allowed_endpoints: ["/a*b"], blocked_endpoints: ["**", "/c*"] }),
      [never("/a*b"), never("**")],
    );
  });

  test("random policies agree with the reference implementation", (t) => {
    const next = random(seed(t));
    const paths = ["/", "/a", "/a/", "/a/b", "/ab", "/b/c", "/a/b/c"];
    for (let i = 0; i < runs(1000); i++) {
      const policy = randomPolicy(next);
      const labels = some(["a", "b", "c"], next);
      for (const path of paths) {
        const verdict = judge(policy, { name: "web-1", labels }, path);
        const message = `${JSON.stringify({ policy, labels, path })}: ${verdict.reason}`;
        assert.equal(verdict.allowed, reference(policy, "web-1", labels, path), message);
        assert.notEqual(verdict.rule, "", message);
      }
    }
  });
});

const PATTERNS = ["", "/a", "/a/b", "/ab", "/b", "a"].flatMap((base) =>
  ["", "*", "/", "/*"].flatMap((end) => base + end || []),
);
const some = <T>(list: readonly T[], next: () => number): T[] => list.filter(() => next() < 0.3);

function randomPolicy(next: () => number): AccessPolicy {
  const policy: Required<AccessPolicy> = {
    allow_all: next() < 0.7,
    name_prefix: ["", "web", "web-1", "db"][Math.floor(next() * 4)] ?? "",
    sprite_labels: some(["a", "b"], next),
    allowed_endpoints: some(PATTERNS, next),
    blocked_endpoints: some(PATTERNS, next).slice(0, 2),
  };
  return Object.fromEntries(Object.entries(policy).filter(() => next() < 0.6));
}
