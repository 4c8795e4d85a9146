import { regexError } from "../regex.ts";
import type { Matcher } from "../source.ts";
import {
  type BinaryExpr,
  type Duration,
  type Expr,
  type Modifier,
  metricName,
  NAME,
  type RawFilter,
  type RollupExpr,
  rebuild,
  type SelectorExpr,
  type StringPart,
  type Template,
} from "./ast.ts";
import { parseError } from "./errors.ts";
import { parseText } from "./parser.ts";

/**
 * WITH templates are put in here, before anything else looks at the tree. A template sees the templates before it
 * and its own parameters, never itself, so putting in always ends; that it ends soon is what `nodes` is for.
 */
interface Expansion {
  text: string;
  nodesLeft: number;
}

type Scope = readonly Template[];

/** Names every query can use. */
const BUILT_IN = `WITH (
  ru(freev, maxv) = clamp_min(maxv - clamp_min(freev, 0), 0) / clamp_min(maxv, 0) * 100,
  ttf(freev) = smooth_exponential(
    clamp_max(clamp_max(-freev, 0) / clamp_max(deriv_fast(freev), 0), 365*24*3600), clamp_max(step()/300, 1)),
  range_median(q) = range_quantile(0.5, q),
  alias(q, name) = label_set(q, "__name__", name),
) 0`;

let builtIn: Scope | undefined;

function builtInScope(): Scope {
  if (!builtIn) {
    const parsed = parseText(BUILT_IN, "metricsql", 50);
    builtIn = parsed.kind === "with" ? parsed.templates : [];
  }
  return builtIn;
}

export function expandTemplates(text: string, expr: Expr, maxNodes: number): Expr {
  return expand({ text, nodesLeft: maxNodes }, builtInScope(), expr);
}

/** Selectors of a dialect without templates. */
export function plainSelectors(text: string, expr: Expr): Expr {
  if (expr.kind === "selector") return resolved({ text, nodesLeft: 1 }, [], expr);
  return rebuild(expr, (child) => plainSelectors(text, child));
}

function expand(x: Expansion, scope: Scope, expr: Expr): Expr {
  if (--x.nodesLeft < 0) throw parseError(x.text, expr.at, "the templates make the query too large (query_nodes)");
  switch (expr.kind) {
    case "with":
      return expand(x, [...scope, ...expr.templates], expr.body);
    case "selector":
      return expandSelector(x, scope, expr);
    case "rollup":
      return expandRollup(x, scope, expr);
    case "binary":
      return expandBinary(x, scope, expr);
    case "call":
    case "aggregate": {
      const args = expr.args.map((arg) => expand(x, scope, arg));
      const template = find(scope, expr.name);
      if (template) return apply(x, scope, template, args, expr.at);
      if (expr.kind === "call" || !expr.modifier) return { ...expr, args };
      return { ...expr, args, modifier: expandModifier(x, scope, expr.modifier, expr.at) };
    }
    case "number":
    case "string":
    case "duration":
    case "negate":
    case "parens":
      return rebuild(expr, (child) => expand(x, scope, child));
  }
}

/** The innermost definition of a name. */
function find(scope: Scope, name: string): Template | undefined {
  return scope.findLast((template) => template.name === name);
}

/** The body with the arguments in place of the parameters, in the scope the template was written in. */
function apply(x: Expansion, scope: Scope, template: Template, args: Expr[], at: number): Expr {
  if (args.length !== template.params.length) {
    const wanted = `${template.params.length} arguments, not ${args.length}`;
    throw parseError(x.text, at, `the template ${template.name} takes ${wanted}`);
  }
  const before = scope.slice(0, scope.lastIndexOf(template));
  const bound = template.params.map((name, i): Template => ({ name, params: [], body: args[i] ?? template.body, at }));
  return expand(x, [...before, ...bound], template.body);
}

function expandRollup(x: Expansion, scope: Scope, expr: RollupExpr): Expr {
  const out: RollupExpr = { ...expr, arg: expand(x, scope, expr.arg) };
  if (expr.window) out.window = expandDuration(x, scope, expr.window, expr.at);
  if (expr.step) out.step = expandDuration(x, scope, expr.step, expr.at);
  if (expr.offset) out.offset = expandDuration(x, scope, expr.offset, expr.at);
  if (expr.moment) out.moment = expand(x, scope, expr.moment);
  // `[$__interval]` alone says nothing, so nothing is left around the argument.
  const bare = !out.window && !out.step && !out.inheritStep && !out.offset && !out.moment;
  return bare ? out.arg : out;
}

function expandDuration(x: Expansion, scope: Scope, duration: Duration, at: number): Duration {
  if (!duration.template) return duration;
  const template = find(scope, duration.text);
  if (!template) throw parseError(x.text, at, `${JSON.stringify(duration.text)} is neither a duration nor a template`);
  const value = apply(x, scope, template, [], at);
  if (value.kind === "duration") return value.duration;
  if (value.kind === "number") return { text: value.text ?? String(value.value) };
  throw parseError(x.text, at, `the template ${duration.text} must give a duration`);
}

function expandBinary(x: Expansion, scope: Scope, expr: BinaryExpr): Expr {
  const left = expand(x, scope, expr.left);
  if (expr.op === "+" && left.kind === "string" && isLoneName(expr.right)) {
    const name = metricNameOf(expr.right);
    if (!find(scope, name))
      throw parseError(x.text, expr.right.at, `there is no template ${name} to add to the string`);
  }
  const right = expand(x, scope, expr.right);
  if (expr.op === "+" && left.kind === "string" && right.kind === "string") {
    return { kind: "string", at: expr.at, value: left.value + right.value };
  }
  const { prefixParts, ...rest } = expr;
  const out: BinaryExpr = { ...rest, left, right };
  if (expr.group) out.group = expandModifier(x, scope, expr.group, expr.at);
  if (expr.join) out.join = expandModifier(x, scope, expr.join, expr.at);
  if (prefixParts) out.prefix = joinParts(x, scope, prefixParts, expr.at);
  return out;
}

/** A selector that is nothing but a name, which is how a template or a label is written. */
function isLoneName(expr: Expr): expr is SelectorExpr {
  return (
    expr.kind === "selector" && expr.raw?.length === 1 && expr.raw[0]?.length === 1 && expr.raw[0][0]?.label === NAME
  );
}

function metricNameOf(selector: SelectorExpr): string {
  const part = selector.raw?.[0]?.[0]?.value[0];
  return typeof part === "string" ? part : (metricName(selector) ?? "");
}

/** Label lists: a template there stands for a name or a list of names. */
function expandModifier(x: Expansion, scope: Scope, modifier: Modifier, at: number): Modifier {
  const labels = modifier.labels.flatMap((label): string[] => {
    const template = find(scope, label);
    if (!template || template.params.length > 0) return [label];
    const names = template.body.kind === "parens" ? template.body.args : [template.body];
    return names.map((name) => {
      const lone = isLoneName(name) ? metricNameOf(name) : onlyName(name);
      if (lone === undefined) throw parseError(x.text, at, `the template ${label} must give label names`);
      return lone;
    });
  });
  return { ...modifier, labels: [...new Set(labels)] };
}

function onlyName(expr: Expr): string | undefined {
  if (expr.kind !== "selector" || expr.raw || expr.filters.length !== 1 || expr.filters[0]?.length !== 1)
    return undefined;
  return metricName(expr);
}

function joinParts(x: Expansion, scope: Scope, parts: StringPart[], at: number): string {
  return parts
    .map((part) => {
      if (typeof part === "string") return part;
      const template = find(scope, part.template);
      const value = template && apply(x, scope, template, [], at);
      if (value?.kind !== "string")
        throw parseError(x.text, at, `${part.template} must be a template that gives a string`);
      return value.value;
    })
    .join("");
}

/** The filters of a selector with its templates put in, without duplicates. */
function resolved(x: Expansion, scope: Scope, expr: SelectorExpr): Pick<SelectorExpr, "kind" | "at" | "filters"> {
  const filters = (expr.raw ?? []).map((group) => {
    const matchers = group.flatMap((filter) => resolveFilter(x, scope, filter, expr.at));
    return nameFirst(x, unique(matchers), expr.at);
  });
  return { kind: "selector", at: expr.at, filters };
}

/** One filter as written becomes one matcher, or those of the template it names. */
function resolveFilter(x: Expansion, scope: Scope, filter: RawFilter, at: number): Matcher[] {
  const place = filter.at < 0 ? at : filter.at;
  if (filter.op === undefined) {
    const template = find(scope, filter.label);
    if (!template) throw parseError(x.text, place, `there is no template ${filter.label}; a filter is name="value"`);
    const value = apply(x, scope, template, [], place);
    if (value.kind !== "selector" || metricName(value) !== undefined || value.filters.length > 1) {
      throw parseError(
        x.text,
        place,
        `the template ${filter.label} must be {...} without a metric name and without or`,
      );
    }
    return value.filters[0] ?? [];
  }
  const value = joinParts(x, scope, filter.value, place);
  if (filter.op.endsWith("~")) {
    const wrong = regexError(value);
    if (wrong !== undefined)
      throw parseError(x.text, place, `the regular expression ${JSON.stringify(value)} is invalid: ${wrong}`);
  }
  return [{ name: filter.label, op: filter.op, value }];
}

const isName = (m: Matcher): boolean => m.name === NAME && m.op === "=";

function nameFirst(x: Expansion, matchers: Matcher[], at: number): Matcher[] {
  const names = matchers.filter(isName);
  if (names.length > 1)
    throw parseError(x.text, at, `a series has one name, not ${names.map((n) => n.value).join(" and ")}`);
  return [...names, ...matchers.filter((m) => !isName(m))];
}

function unique(matchers: Matcher[]): Matcher[] {
  const key = (m: Matcher): string => `${m.name}\0${m.op}\0${m.value}`;
  const seen = new Set<string>();
  return matchers.filter((m) => !seen.has(key(m)) && seen.add(key(m)));
}

/** A selector; when its name is a template, the template's filters in front of its own. */
function expandSelector(x: Expansion, scope: Scope, expr: SelectorExpr): Expr {
  if (!expr.raw) return expr;
  const name = templateName(expr);
  const template = name === undefined ? undefined : find(scope, name);
  const own = template ? { ...expr, raw: expr.raw.map((group) => withoutName(group, name ?? "")) } : expr;
  const selector = resolved(x, scope, own);
  if (!template || name === undefined) return selector;
  if (template.params.length > 0) {
    const named: Matcher = { name: NAME, op: "=", value: name };
    return { ...selector, filters: selector.filters.map((group) => [named, ...group]) };
  }
  const body = apply(x, scope, template, [], expr.at);
  const inner = body.kind === "rollup" ? body.arg : body;
  const bare = selector.filters.every((group) => group.length === 0);
  if (inner.kind !== "selector") {
    if (bare) return body;
    throw parseError(x.text, expr.at, `the template ${name} is no selector, so it takes no filters`);
  }
  const merged: SelectorExpr = { ...inner, filters: merge(x, inner, selector, expr.at) };
  return body.kind === "rollup" ? { ...body, arg: merged } : merged;
}

function templateName(expr: SelectorExpr): string | undefined {
  const names = (expr.raw ?? []).map((group) => group.find((f) => f.label === NAME && f.op === "=")?.value[0]);
  return typeof names[0] === "string" && names.every((name) => name === names[0]) ? names[0] : undefined;
}

function withoutName(group: RawFilter[], name: string): RawFilter[] {
  return group.filter((f) => !(f.label === NAME && f.op === "=" && f.value.length === 1 && f.value[0] === name));
}

/** Alternatives on one side are combined with the filters of the other; on both they would multiply. */
function merge(x: Expansion, template: SelectorExpr, own: { filters: Matcher[][] }, at: number): Matcher[][] {
  const many = template.filters.length > 1 && own.filters.length > 1;
  if (many) throw parseError(x.text, at, "both the template and its filters have or; only one of them can");
  if (template.filters.length === 0) return own.filters.filter((group) => group.length > 0);
  return template.filters.flatMap((first) =>
    own.filters.map((second) => nameFirst(x, unique([...first, ...second]), at)),
  );
}
