/**
 * Evaluates a connector's access policy. Deny by default; the sprite is checked first, then blocked endpoints, then
 * allowed ones. The first rule that refuses decides.
 */
import { foldedPath } from "./paths.ts";
import type { AccessPolicy, Sprite } from "./types.ts";

export interface Verdict {
  allowed: boolean;
  /** The deciding rule, by field: `blocked_endpoints[0] "/admin*"`. */
  rule: string;
  /** For the caller. */
  reason: string;
}

/** A rule refuses, or passes with its reason. */
type Step = { refused: Verdict } | { passed: string };

const refuse = (rule: string, reason: string): Step => ({ refused: { allowed: false, rule, reason } });

export function judge(policy: AccessPolicy, sprite: Pick<Sprite, "name" | "labels">, path: string): Verdict {
  const steps = [judgeSprite(policy, sprite), judgeBlocked(policy, path), judgeAllowed(policy, path)];
  const passed: string[] = [];
  for (const step of steps) {
    if ("refused" in step) return step.refused;
    if (step.passed !== "") passed.push(step.passed);
  }
  return { allowed: true, rule: passed.join(", "), reason: `allowed by ${passed.join(" and ")}` };
}

/** Whether the machine may use the connector at all. */
export function judgeSprite(policy: AccessPolicy, sprite: Pick<Sprite, "name" | "labels">): Step {
  const { allow_all, name_prefix = "", sprite_labels = [] } = policy;
  if (allow_all) return { passed: "allow_all" };
  if (name_prefix === "" && sprite_labels.length === 0)
    return refuse("default", "connection denies all sprites by default: its policy names none");
  if (!sprite.name.startsWith(name_prefix))
    return refuse(
      `name_prefix ${JSON.stringify(name_prefix)}`,
      `sprite name ${JSON.stringify(sprite.name)} does not start with ${JSON.stringify(name_prefix)}`,
    );
  const missing = sprite_labels.filter((label) => !sprite.labels.includes(label));
  if (missing.length > 0)
    return refuse(
      `sprite_labels ${JSON.stringify(missing)}`,
      `sprite is missing required labels: ${missing.join(", ")}`,
    );
  const content = [name_prefix === "" ? "" : "name_prefix", sprite_labels.length === 0 ? "" : "sprite_labels"];
  return { passed: content.filter(Boolean).join(", ") };
}

function judgeBlocked({ blocked_endpoints = [] }: AccessPolicy, path: string): Step {
  const at = blocked_endpoints.findIndex((pattern) => blocks(pattern, path));
  if (at < 0) return { passed: "" };
  return refuse(ruleName("blocked_endpoints", at, blocked_endpoints), `endpoint not allowed: ${path} is blocked`);
}

function judgeAllowed({ allowed_endpoints = [] }: AccessPolicy, path: string): Step {
  if (allowed_endpoints.length === 0) return { passed: "" };
  const at = allowed_endpoints.findIndex((pattern) => allows(pattern, path));
  if (at < 0)
    return refuse("allowed_endpoints", `endpoint not allowed: ${path} is not one of the connector's allowed endpoints`);
  return { passed: ruleName("allowed_endpoints", at, allowed_endpoints) };
}

const ruleName = (list: string, at: number, patterns: readonly string[]): string =>
  `${list}[${at}] ${JSON.stringify(patterns[at])}`;

/** An exact path, or a prefix ending in `*`. */
function allows(pattern: string, path: string): boolean {
  const { text, open } = readPattern(pattern);
  return open ? path.startsWith(text) : path === text;
}

/** The same, for every path that a provider might treat as the blocked one. */
function blocks(pattern: string, path: string): boolean {
  const { text, open } = readPattern(pattern);
  const wanted = foldedPath(text);
  const folded = foldedPath(path);
  return open ? folded.startsWith(wanted) : withoutSlash(folded) === withoutSlash(wanted);
}

function readPattern(pattern: string): { text: string; open: boolean } {
  const open = pattern.endsWith("*");
  const text = open ? pattern.slice(0, -1) : pattern;
  // `user` means `/user`; `*` alone matches everything.
  return { text: text.startsWith("/") ? text : `/${text}`, open };
}

const withoutSlash = (path: string): string => path.replace(/\/$/, "");

export const hasPathRules = ({ allowed_endpoints = [], blocked_endpoints = [] }: AccessPolicy): boolean =>
  allowed_endpoints.length > 0 || blocked_endpoints.length > 0;

/** Rules that can never match, reported when the policy is written. */
export function policyWarnings(policy: AccessPolicy): string[] {
  const { allowed_endpoints = [], blocked_endpoints = [], allow_all, name_prefix = "", sprite_labels = [] } = policy;
  const starred = [...allowed_endpoints, ...blocked_endpoints].filter((pattern) => pattern.slice(0, -1).includes("*"));
  return [
    ...starred.map((pattern) => `${JSON.stringify(pattern)} never matches: a * is a wildcard only at the end`),
    ...(!allow_all && name_prefix === "" && sprite_labels.length === 0
      ? ["no sprite may use this connector: set allow_all, name_prefix or sprite_labels"]
      : []),
  ];
}
