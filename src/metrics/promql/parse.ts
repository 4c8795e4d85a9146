import { children, type Dialect, type Expr } from "./ast.ts";
import { checkStrict } from "./check.ts";
import { parseError, QueryError, refuseTooDeep } from "./errors.ts";
import { AGGREGATES, isRollup, isTransform, nearest, ROLLUPS, TRANSFORMS } from "./functions/names.ts";
import { limitMessage, QUERY_LIMITS, type QueryLimits } from "./limits.ts";
import { parseText } from "./parser.ts";
import { dropParens, foldConstants } from "./simplify.ts";
import { expandTemplates, plainSelectors } from "./templates.ts";

/** Text to tree: templates put in, constants folded, every function known. Throws a QueryError with the place. */
export function parse(text: string, dialect: Dialect = "metricsql", limits: QueryLimits = QUERY_LIMITS): Expr {
  refuseTooLong(text, limits);
  return refuseTooDeep(() => parseChecked(text, dialect, limits));
}

/** A query of the strict dialect as it was written, parentheses included. */
export function parseAsWritten(text: string, limits: QueryLimits = QUERY_LIMITS): Expr {
  refuseTooLong(text, limits);
  return refuseTooDeep(() => {
    const written = plainSelectors(text, parseText(text, "promql", limits.query_depth));
    checkStrict(text, dropParens(written));
    return written;
  });
}

function refuseTooLong(text: string, limits: QueryLimits): void {
  if (text.length > limits.query_bytes) {
    throw new QueryError(
      "bad_data",
      limitMessage("query_bytes", limits.query_bytes, `the query has ${text.length} characters`),
    );
  }
}

function parseChecked(text: string, dialect: Dialect, limits: QueryLimits): Expr {
  const raw = parseText(text, dialect, limits.query_depth);
  if (dialect === "promql") {
    const expr = dropParens(plainSelectors(text, raw));
    checkStrict(text, expr);
    return expr;
  }
  const expr = foldConstants(dropParens(expandTemplates(text, raw, limits.query_nodes)));
  checkFunctions(text, expr);
  return expr;
}

/** A name is looked up only now, since templates may have replaced it. */
function checkFunctions(text: string, expr: Expr): void {
  if (expr.kind === "call" && !isRollup(expr.name) && !isTransform(expr.name)) {
    const near = nearest(expr.name, [...TRANSFORMS, ...Object.keys(ROLLUPS), ...AGGREGATES]);
    throw parseError(text, expr.at, `there is no function ${expr.name}${near ? `; did you mean ${near}?` : ""}`);
  }
  for (const child of children(expr)) checkFunctions(text, child);
}
