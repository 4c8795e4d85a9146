/** Limits of a query's fields and depth, checked before it runs; its calls are counted while it runs. */
import { type DocumentNode, Kind, type SelectionNode, type SelectionSetNode } from "graphql";
import { FLY_LIMITS } from "../limits.ts";

const DEEP = `the query is nested deeper than ${FLY_LIMITS.graphql_depth} (limit graphql_depth)`;
const WIDE = `the query has more than ${FLY_LIMITS.graphql_fields} fields (limit graphql_fields)`;

/** Why the document is refused; undefined when it is not. Its fragments have no cycles: it is valid. */
export function tooMuch({ definitions }: DocumentNode): string | undefined {
  const fragments = new Map<string, SelectionSetNode>();
  for (const one of definitions)
    if (one.kind === Kind.FRAGMENT_DEFINITION) fragments.set(one.name.value, one.selectionSet);
  let fields = 0;
  const inside = (one: SelectionNode, depth: number): string | undefined => {
    if (++fields > FLY_LIMITS.graphql_fields) return WIDE;
    const inner = one.kind === Kind.FRAGMENT_SPREAD ? fragments.get(one.name.value) : one.selectionSet;
    return inner && look(inner, one.kind === Kind.FIELD ? depth + 1 : depth);
  };
  const look = ({ selections }: SelectionSetNode, depth: number): string | undefined => {
    if (depth > FLY_LIMITS.graphql_depth) return DEEP;
    for (const one of selections) {
      const problem = inside(one, depth);
      if (problem) return problem;
    }
    return undefined;
  };
  for (const one of definitions) {
    const problem = one.kind === Kind.OPERATION_DEFINITION ? look(one.selectionSet, 1) : undefined;
    if (problem) return problem;
  }
  return undefined;
}
