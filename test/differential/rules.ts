/**
 * The differences that are known, by name. Each says when it may be the reason; most also know how to ask so that
 * it cannot be: then both engines are asked that way, and must give the same answer, before the difference counts as
 * explained.
 */
import { type Answer, compare, type Difference, isClose } from "./answers.ts";
import type { Asked } from "./choices.ts";
import type { Peer } from "./engines.ts";

interface Rule {
  name: string;
  applies(asked: Asked, difference: Difference, ours: Answer, theirs: Answer): boolean;
  /** The same without what the engines disagree about. */
  instead?(asked: Asked): Asked;
}

/** Replaces the words of one kind by one that both understand in the same way. */
function reworded(pattern: RegExp, replacement: string): Pick<Rule, "applies"> & Required<Pick<Rule, "instead">> {
  return {
    applies: ({ query }) => query.search(pattern) >= 0,
    instead: (asked) => ({ ...asked, query: asked.query.replaceAll(pattern, replacement) }),
  };
}

const GROUPED = String.raw`(?: (?:by|without) \([^)]*\))?`;
const BEST_OF = new RegExp(String.raw`^\w+${GROUPED} ?\(\d+, (.*?)(?:, "other")?\)${GROUPED}$`, "s");

/** The series that the best are chosen from. */
function chosenFrom(asked: Asked): Asked {
  return { ...asked, query: asked.query.replace(BEST_OF, "$1") };
}

const SAME_LABELS = /^vector cannot contain metrics with the same labelset|grouping labels must ensure unique matches$/;
const LOOKBACK_MS = 300_000;

/** Prometheus 2.42; ours is 3. */
const PROMETHEUS: Rule[] = [
  {
    // Since 3 they are dropped at the end (delayed name removal), when the names no longer tell anything apart.
    name: "names are dropped at once, so series of several names collide",
    applies: ({ query }, { errors }) =>
      errors?.ours === undefined && SAME_LABELS.test(errors?.theirs ?? "") && /__name__=~| or /.test(query),
  },
  {
    name: "label names are ASCII",
    applies: ({ query }, { errors }) =>
      errors?.ours === undefined &&
      /^invalid (destination )?label name/.test(errors?.theirs ?? "") &&
      /"a[- ]b"/.test(query),
  },
  { name: "atan2 keeps the metric name", ...reworded(/\batan2\b/g, "-") },
  {
    name: "a comparison that lets nothing through hides that many match one",
    applies: ({ query }, { errors }) =>
      errors?.theirs === undefined &&
      /multiple matches for labels/.test(errors?.ours ?? "") &&
      /[^=!]=[=]|!=|[<>]/.test(query.replaceAll(/\{[^}]*\}/g, "")),
  },
  { name: "a counter near 0 is extrapolated to 0 beyond half a gap", ...reworded(/\b(rate|increase)\(/g, "delta(") },
  {
    name: "timestamp of a selector with @ looks at another time",
    ...reworded(/\btimestamp\(/g, "abs("),
    applies: ({ query }) => /\btimestamp\(/.test(query) && query.includes("@"),
  },
  { name: "stddev and stdvar of one infinity are 0", ...reworded(/\bstd(dev|var)(?= ?(\(|by|without))/g, "avg") },
];

/** The labels of one side of an operator become filters of the other, where no stored series may have them. */
export const PUSHED_DOWN = "filter push-down: labels that a rollup makes are looked for in stored series";

/** VictoriaMetrics 1.79.5; ours follows the newest. */
const VICTORIA: Rule[] = [
  {
    name: "rollups under an aggregation lose their numbers",
    applies: ({ query }, { errors }) =>
      errors?.ours === undefined &&
      /expecting at least 2 args to|unexpected number of args/.test(errors?.theirs ?? "") &&
      /\b(\w+_over_time|hoeffding_bound_\w+|predict_linear)\(/.test(query),
  },
  {
    // Newer ones look as far back as the step of an instant query, which is five minutes.
    name: "the sample before the window of an instant query must be as near as in a range query",
    applies: ({ start_ms, end_ms }) => start_ms === end_ms,
    instead: ({ step_ms = LOOKBACK_MS, ...asked }) => ({ ...asked, start_ms: asked.end_ms - step_ms, step_ms }),
  },
  { name: "a comparison with nothing is answered", ...reworded(/ (?:==|!=|<=|>=|<|>) bool /g, " - ") },
  { name: "a comparison with nothing is answered", ...reworded(/ != (?!bool )/g, " >= ") },
  {
    name: "an empty window repeats the sample before it",
    ...reworded(/\b(geomean|sum2|distinct)_over_time\(/g, "sum_over_time("),
  },
  {
    name: "an aggregation may have only so many series",
    applies: (_, { errors }) => /too many timeseries after agg/.test(errors?.theirs ?? ""),
  },
  { name: "sgn of a series without a value is 0", ...reworded(/\bsgn\(/g, "abs(") },
  {
    name: "which of two series with the same labels union keeps is not specified",
    ...reworded(/\bunion\(/g, "sum("),
  },
  {
    // Without their names they have the same labels; with more steps in common it is an error in both.
    name: "which of two series that share a step or two is kept there is not specified",
    ...reworded(/__name__=~"svc_instance_\(load\|mem\)\.\*"/g, '__name__="svc_instance_up"'),
  },
  {
    name: "limit_offset counts series without a value",
    ...reworded(/\blimit_offset\(2, 1, /g, "sum("),
  },
  {
    name: PUSHED_DOWN,
    ...reworded(
      /\b(?:rollup\w*|histogram_over_time)\(|\bquantiles_over_time\("q", 0\.1, 0\.9,|\baggr_over_time\(\([^)]*\),/g,
      "avg_over_time(",
    ),
  },
  {
    name: "filter push-down: labels to group by are looked for in stored series that have none of them",
    ...reworded(/ by \([^)]*\)/g, " by (app, host, instance, region)"),
    applies: ({ query }, { errors, onlyOurs, onlyTheirs }) =>
      errors === undefined && / by \(/.test(query) && onlyOurs.length > 0 && onlyTheirs.length === 0,
  },
  {
    name: "filter push-down: of an aggregate of several arguments only the first is looked at",
    ...reworded(/\b([a-z]\w+)\((svc_\w+(?:\{[^}]*\})?), (?=svc_)/g, "$1($2 or "),
  },
  {
    // What it usually is says how far before the window the sample before may lie; counting looks at the window alone.
    name: "a subquery begins a step later, so the usual gap of a series with few points is another",
    ...reworded(
      /\b(?:i?(?:delta|deriv|rate)|deriv_fast|increase(?:_pure)?|changes|integrate|(?:in|de)creases_over_time|(?:a|de)scent_over_time)\(\(/g,
      "count_over_time((",
    ),
  },
  {
    name: "what stands beside nothing is not looked at, mistakes included",
    applies: (_, { errors }, __, theirs) =>
      /duplicate time series on the/.test(errors?.ours ?? "") && theirs.error === undefined && theirs.series.size === 0,
  },
  {
    name: "range_quantile and range_median between infinities are infinite",
    ...reworded(/\brange_(?:quantile\(0\.[59], |median\()/g, "running_avg("),
  },
  { name: "range_avg and range_sum leave gaps open", ...reworded(/\brange_(avg|sum)\(/g, "running_$1(") },
  { name: "smooth_exponential of infinities ends at a gap", ...reworded(/\bsmooth_exponential\(/g, "clamp_min(") },
  { name: "scalar counts series without a value", ...reworded(/\bscalar\(/g, "sum(") },
  {
    name: "a counter without resets may fall",
    ...reworded(/\b(rollup_)?(?:i?rate|increase(?:_pure)?)\(/g, "$1delta("),
  },
  {
    name: "bottomk chooses series without a value",
    applies: ({ query }, { errors }) => errors === undefined && /^bottomk\b/.test(query),
    instead: chosenFrom,
  },
  { name: "ifnot beside nothing gives nothing", ...reworded(/ ifnot /g, " unless ") },
  { name: "default beside nothing gives nothing", ...reworded(/ default /g, " or ") },
  { name: "or takes whole series, not points", ...reworded(/ or /g, " unless ") },
];

const CANCELLED = "rounding: nearly equal values leave only their last digits";
const MAGNIFIED = "rounding: a function makes the last digits large";
const EQUALS = "which of equal series is best is not specified";

/** Every step has the same values, in whichever series. */
function isSameButWhose(ours: Answer, theirs: Answer): boolean {
  return compareValues(valuesByTime(ours), valuesByTime(theirs));
}

function valuesByTime({ series }: Answer): Map<number, Float64Array> {
  const found = new Map<number, Float64Array>();
  for (const points of series.values()) {
    // Typed arrays have a place for NaN in their order.
    for (const [time, value] of points)
      found.set(time, Float64Array.from([...(found.get(time) ?? []), Number(value)]).sort());
  }
  return found;
}

function compareValues(ours: Map<number, Float64Array>, theirs: Map<number, Float64Array>): boolean {
  return (
    ours.size === theirs.size &&
    [...ours].every(([time, values]) => {
      const others = theirs.get(time) ?? new Float64Array();
      return values.length === others.length && values.every((value, i) => isClose(value, others[i] ?? Number.NaN));
    })
  );
}

const NEARLY_ZERO = 1e-9;
const NEARLY_EQUAL = 1e-4;

const BOTH: Rule[] = [
  {
    // The smallest value in the data is 0.01.
    name: CANCELLED,
    applies: (_, { errors, onlyOurs, onlyTheirs, values }) =>
      errors === undefined &&
      onlyOurs.length + onlyTheirs.length === 0 &&
      // None differ where it is the type or the order that does.
      values.length > 0 &&
      values.every(
        ({ ours, theirs }) => Math.abs(Number(ours)) < NEARLY_ZERO && Math.abs(Number(theirs)) < NEARLY_ZERO,
      ),
  },
  {
    name: CANCELLED,
    ...reworded(/\bstd(dev|var)|\b(deriv|zscore)(?=\()/g, "avg"),
    applies: ({ query }, { errors, values }) =>
      errors === undefined &&
      /\bstd(dev|var)|\bzscore\(/.test(query) &&
      values.every(({ ours, theirs }) => isClose(Number(ours), Number(theirs), NEARLY_EQUAL)),
  },
  { name: MAGNIFIED, ...reworded(/\b(sin|cos|tan|ceil|floor)\(/g, "abs(") },
  { name: MAGNIFIED, ...reworded(/ [%^] /g, " + ") },
  { name: MAGNIFIED, ...reworded(/\bround\(/g, "clamp_min(") },
  { name: MAGNIFIED, ...reworded(/\b(changes|resets)\(\(/g, "sum_over_time((") },
  {
    name: EQUALS,
    applies: ({ query }, _, ours, theirs) => /^(top|bottom)k/.test(query) && isSameButWhose(ours, theirs),
  },
  {
    // Equal over all steps together, so the values of a step may differ; what they were chosen from may not.
    name: EQUALS,
    applies: ({ query }, { errors }) => errors === undefined && /^((top|bottom)k_|outliersk)/.test(query),
    instead: chosenFrom,
  },
];

const RULES: Record<Peer, readonly Rule[]> = {
  prometheus: [...PROMETHEUS, ...BOTH],
  "victoria-metrics": [...VICTORIA, ...BOTH],
};

const VERSIONS: Record<Peer, string> = { prometheus: "prometheus 2.42", "victoria-metrics": "victoria-metrics 1.79.5" };

function nameOf(peer: Peer, { name }: Rule): string {
  return [EQUALS, CANCELLED, MAGNIFIED].includes(name) ? name : `${VERSIONS[peer]}: ${name}`;
}

/** What both engines say to a query. */
export type AskBoth = (asked: Asked) => Promise<{ ours: Answer; theirs: Answer }>;

/**
 * The names of the rules that explain a difference: one alone if possible, else all that may apply together;
 * undefined when they do not.
 */
export async function explain(
  peer: Peer,
  asked: Asked,
  answers: { ours: Answer; theirs: Answer },
  difference: Difference,
  ask: AskBoth,
): Promise<string[] | undefined> {
  const { ours, theirs } = answers;
  const may = RULES[peer].filter((rule) => rule.applies(asked, difference, ours, theirs));
  const alone = may.find((rule) => rule.instead === undefined);
  if (alone) return [nameOf(peer, alone)];
  const groups = [...may.map((rule) => [rule]), ...(may.length > 1 ? [may] : [])];
  for (const group of groups) {
    const other = group.reduce((before, rule) => rule.instead?.(before) ?? before, asked);
    const again = await ask(other);
    // Two refusals say nothing about values.
    const says = again.ours.error === undefined || difference.errors !== undefined;
    const isSame = says && !compare(again.ours, again.theirs, false);
    if (isSame) return group.map((rule) => nameOf(peer, rule));
  }
  return undefined;
}

/** The queries whose answers have an order. */
export function isOrdered(peer: Peer, { query, step_ms }: Asked): boolean {
  if (step_ms !== undefined) return peer === "prometheus";
  return /^sort(_desc)?\(/.test(query);
}
