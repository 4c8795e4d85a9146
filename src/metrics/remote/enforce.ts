import { narrowed } from "../promql/narrow.ts";
import { parse } from "../promql/parse.ts";
import { print } from "../promql/printer.ts";
import type { Matcher } from "../source.ts";

/** The label that identifies organizations in an engine without tenants. It never leaves the platform. */
export const ORG_LABEL = "hangar_org";

/** Restricts every selector of the query to the organization; a query that cannot be parsed is refused and not sent. */
export function narrowedQuery(text: string, org_id: string | undefined): string {
  if (org_id === undefined) return print(parse(text, "metricsql"));
  return narrowed(text, "metricsql", { name: ORG_LABEL, op: "=", value: org_id });
}

/** The same for a `match[]`; without one, everything of the organization. */
export function narrowedSelectors(
  selector: readonly (readonly Matcher[])[] | undefined,
  org_id: string | undefined,
): string[] {
  const groups = (selector ?? [[]]).map((group) => [...group]);
  if (org_id !== undefined) narrow(groups, org_id);
  return groups.map((group) => print({ kind: "selector", at: 0, filters: [group.length > 0 ? group : ANY] }));
}

/** Matches every series, because all have a name. */
const ANY: Matcher[] = [{ name: "__name__", op: "!=", value: "" }];

function narrow(groups: Matcher[][], org_id: string): void {
  for (const group of groups) group.push({ name: ORG_LABEL, op: "=", value: org_id });
}

/**
 * The answer without the label. In JSON and in exposition text a quote inside a text is always escaped, so these bytes
 * can be nothing but the label itself.
 */
export function withoutOrg(text: string, org_id: string): string {
  const json = `"${ORG_LABEL}":"${org_id}"`;
  const exposed = `${ORG_LABEL}="${org_id}"`;
  return text
    .replaceAll(`,${json}`, "")
    .replaceAll(`${json},`, "")
    .replaceAll(json, "")
    .replaceAll(`,${exposed}`, "")
    .replaceAll(`{${exposed},`, "{")
    .replaceAll(`{${exposed}}`, "");
}
