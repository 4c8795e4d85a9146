/** Validates a request by the schemas of its row. */
import { fail, type Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Input } from "./admission.ts";
import { dropEmpty, dropEmptyParameters } from "./empty-values.ts";
import { refusedFields } from "./field-support.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Row } from "./route.ts";
import { coerceQuery, dropNulls, problems, unknownFields } from "./validate.ts";

/** Fails with every problem at once. `unknown` are warnings about unknown fields. */
export function checkedInput(row: Row, given: Input): Input & { unknown: string[] } {
  const query = queryOf(row, given.query);
  const body = row.body ? bodyOf(row, row.body, given.body) : undefined;
  const found: Problem[] = [
    ...(row.query ? problems(row.query, query, "query") : []),
    ...(row.body ? [...problems(row.body, body, "body"), ...refusedFields(row.body, body, "body")] : []),
    ...(row.check?.(body) ?? []),
  ].slice(0, LIMITS.problems_listed);
  const [first, ...others] = found;
  if (first) {
    const more = others.length > 0 ? ` (and ${others.length} more, see details)` : "";
    fail("invalid_request", `${first.path} ${first.problem}${more}`, { details: found });
  }
  return { params: given.params, query, body, unknown: row.body ? unknownFields(row.body, body) : [] };
}

function queryOf(row: Row, given: Record<string, unknown>): Record<string, unknown> {
  if (!row.query) return given;
  return coerceQuery(row.query, row.style === "prometheus" ? dropEmptyParameters(row.query, given) : given);
}

/** The body without nulls and empty strings that stand for absent fields. */
const bodyOf = (row: Row, schema: JsonSchema, body: unknown): unknown =>
  dropEmpty(row, schema, dropNulls(schema, orEmpty(schema, body)));

/**
 * A missing body, or the empty array that some languages send for an empty object, is an empty object where one is
 * expected.
 */
function orEmpty(schema: JsonSchema, body: unknown): unknown {
  const empty = body === undefined || (Array.isArray(body) && body.length === 0);
  return empty && schema.type === "object" ? {} : body;
}
