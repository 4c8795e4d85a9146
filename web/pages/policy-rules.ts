/** An access policy as rules in the order in which the gateway applies them: the machine, blocked paths, allowed paths. */
import type { VNode } from "preact";
import { code, li, ol, span } from "../html.ts";
import { badge } from "../parts/basics.ts";

export interface AccessPolicy {
  allow_all?: boolean | undefined;
  allowed_endpoints?: string[] | undefined;
  blocked_endpoints?: string[] | undefined;
  name_prefix?: string | undefined;
  sprite_labels?: string[] | undefined;
}

interface Rule {
  /** As in the rule of a verdict: `blocked_endpoints[0]`. */
  key: string;
  effect: "allow" | "deny";
  text: (VNode | string)[];
}

export interface Verdict {
  allowed: boolean;
  rule: string;
  reason: string;
}

const REST_ALLOWED = "every path";

/** Each pattern is an exact path, or a prefix that ends in `*`. */
function pathText(pattern: string): (VNode | string)[] {
  const path = pattern.startsWith("/") ? pattern : `/${pattern}`;
  return path.endsWith("*") ? ["paths that begin with ", code(path.slice(0, -1))] : ["the path ", code(path)];
}

const listed = (items: readonly string[]): (VNode | string)[] =>
  items.flatMap((item, index) => (index === 0 ? [code(item)] : [" and ", code(item)]));

function machineRules({ allow_all, name_prefix = "", sprite_labels = [] }: AccessPolicy): Rule[] {
  if (allow_all) return [{ key: "allow_all", effect: "allow", text: ["every machine of the organization"] }];
  if (name_prefix === "" && sprite_labels.length === 0)
    return [{ key: "default", effect: "deny", text: ["every machine: the policy names none"] }];
  const named: Rule[] = [
    { key: "name_prefix", effect: "deny", text: ["machines whose name does not begin with ", code(name_prefix)] },
  ];
  const labelled: Rule[] = [
    { key: "sprite_labels", effect: "deny", text: ["machines without the labels ", ...listed(sprite_labels)] },
  ];
  return [...(name_prefix === "" ? [] : named), ...(sprite_labels.length === 0 ? [] : labelled)];
}

function pathRules({ allowed_endpoints: allowed = [], blocked_endpoints: blocked = [] }: AccessPolicy): Rule[] {
  const rule = (list: string, effect: Rule["effect"]) => (pattern: string, index: number) => ({
    key: `${list}[${index}]`,
    effect,
    text: pathText(pattern),
  });
  const rest: Rule =
    allowed.length === 0
      ? { key: REST_ALLOWED, effect: "allow", text: [blocked.length === 0 ? "every path" : "every other path"] }
      : { key: "allowed_endpoints", effect: "deny", text: ["every other path"] };
  return [...blocked.map(rule("blocked_endpoints", "deny")), ...allowed.map(rule("allowed_endpoints", "allow")), rest];
}

export const rulesOf = (policy: AccessPolicy): Rule[] => {
  const machines = machineRules(policy);
  return machines.some(({ key }) => key === "default") ? machines : [...machines, ...pathRules(policy)];
};

/** Key of the rule that decided; an allowed request ends at a rule for its path, or at none. */
export function decidingKey({ allowed, rule }: Verdict): string {
  const path = /(?:blocked|allowed)_endpoints(?:\[\d+\])?/.exec(rule)?.[0];
  if (path) return path;
  return allowed ? REST_ALLOWED : (/^\w+/.exec(rule)?.[0] ?? "");
}

/** The rules as a list; the one that decided the last test is marked. */
export function Rules({ policy, verdict }: { policy: AccessPolicy; verdict: Verdict | undefined }): VNode {
  const decided = verdict ? decidingKey(verdict) : undefined;
  return ol(
    { class: "rules", "aria-label": "Rules, in order" },
    ...rulesOf(policy).map(({ key, effect, text }) =>
      li(
        { key, "aria-current": key === decided ? "true" : undefined },
        badge(effect),
        span(...text),
        key === decided ? span({ class: "dim" }, "decides") : null,
      ),
    ),
  );
}
