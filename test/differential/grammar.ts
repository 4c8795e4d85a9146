/**
 * Random queries: one grammar for both dialects, well-typed for the most part, with some mistakes in it. Each production
 * has the forms that both dialects know; a dialect has words of its own, and forms that only it knows.
 */
import {
  type Asked,
  anyMetric,
  BUCKETS,
  type Choices,
  COMMON,
  COUNTERS,
  type Form,
  GAUGES,
  grouping,
  labelsOf,
  type Metric,
  NUMBERS,
  selector,
} from "./choices.ts";

/** The productions that a dialect may add forms to. */
type Production =
  | "vector"
  | "rollup"
  | "best"
  | "aggregate"
  | "call"
  | "matched"
  | "relabelled"
  | "quantile"
  | "absent"
  | "scalar";

export interface DialectOfQueries {
  counter_rollups: readonly string[];
  gauge_rollups: readonly string[];
  maths: readonly string[];
  folds: readonly string[];
  best: readonly string[];
  arithmetic: readonly string[];
  /** Operators besides arithmetic and comparisons, where both sides are series; they know no group_left. */
  logical: readonly string[];
  /** In brackets, with the brackets; empty lets the engine choose. */
  windows: readonly string[];
  offsets: readonly string[];
  subqueries: readonly string[];
  /** Times behind an `@`, besides those of the data. */
  ats: readonly string[];
  /** How many are best. */
  counts: readonly string[];
  /** Numbers that may stand to the left of series. */
  left_numbers: readonly string[];
  /** Which part of the series a quantile is, of series and of buckets. */
  phis: readonly string[];
  /** What buckets are gathered by. */
  bucket_groups: readonly string[];
  /** Scalars that are one word. */
  scalars: readonly string[];
  /** Behind a call, now and then. */
  suffix: string;
  forms: { [P in Production]?: (g: Grammar, depth: number) => Form<string>[] };
  mistakes(g: Grammar): string[];
}

const COMPARISONS = ["==", "!=", ">", "<", ">=", "<="];

export class Grammar {
  readonly c: Choices;
  readonly #own: DialectOfQueries;

  constructor(c: Choices, own: DialectOfQueries) {
    this.c = c;
    this.#own = own;
  }

  /** A query and when it is asked. */
  asked(): Asked {
    return this.c.asked(
      this.c.form([
        [12, () => this.vector(3)],
        [1, () => this.#best()],
        [1, () => this.scalar(2)],
        [1, () => this.#mistake()],
      ]),
    );
  }

  vector(depth: number): string {
    if (depth <= 0) return this.moved(selector(this.c));
    return this.#form("vector", depth, [
      [2, () => this.moved(selector(this.c))],
      [6, () => this.#form("rollup", depth, this.#rollups(depth)) + this.#suffix()],
      [5, () => this.#aggregate(depth)],
      [3, () => this.#call(depth)],
      [3, () => this.#withNumber(depth)],
      [4, () => this.#matched(depth)],
      [1.5, () => this.#form("relabelled", depth)],
      [1, () => this.#quantile(depth)],
      [0.5, () => `-${this.inner(depth)}`],
      [0.5, () => `${this.c.pick(["sort", "sort_desc"])}(${this.vector(depth - 1)})`],
      [0.5, () => this.#form("absent", depth)],
    ]);
  }

  inner(depth: number): string {
    return `(${this.vector(depth - 1)})`;
  }

  /** A selector or a range, now and then at another time. */
  moved(text: string): string {
    const { c } = this;
    const offset = c.chance(0.15) ? ` offset ${c.pick(this.#own.offsets)}` : "";
    const at = c.chance(0.1) ? ` @ ${c.pick([`${c.time_ms() / 1000}`, ...this.#own.ats])}` : "";
    return `${text}${c.chance(0.5) ? offset + at : at + offset}`;
  }

  /** A selector with a window. */
  windowed(of?: Metric): string {
    return `${selector(this.c, of)}${this.window()}`;
  }

  window(): string {
    return this.c.pick(this.#own.windows);
  }

  range(depth: number): string {
    return this.c.chance(0.7) ? this.moved(this.windowed()) : this.moved(this.subquery(depth));
  }

  subquery(depth: number): string {
    return `${this.inner(Math.min(depth, 2))}[${this.c.pick(this.#own.subqueries)}]`;
  }

  /** Arithmetic or a comparison. */
  operator(): string {
    const { c } = this;
    return c.form([
      [3, () => c.pick(this.#own.arithmetic)],
      [2, () => `${c.pick(COMPARISONS)}${c.chance(0.3) ? " bool" : ""}`],
    ]);
  }

  scalar(depth: number): string {
    const { c } = this;
    if (depth <= 0) return c.pick(NUMBERS);
    return this.#form("scalar", depth, [
      [4, () => c.pick(NUMBERS)],
      [1, () => c.pick(this.#own.scalars)],
      [2, () => `scalar(${this.vector(depth - 1)})`],
      [1, () => `(${this.scalar(depth - 1)} ${c.pick(this.#own.arithmetic)} ${this.scalar(depth - 1)})`],
      [1, () => `(${this.scalar(depth - 1)} ${c.pick(COMPARISONS)} bool ${this.scalar(depth - 1)})`],
      [0.5, () => `-${this.scalar(0)}`],
    ]);
  }

  /** One of the forms that both dialects know, or of the dialect's own. */
  #form(production: Production, depth: number, shared: readonly Form<string>[] = []): string {
    return this.c.form([...shared, ...(this.#own.forms[production]?.(this, depth) ?? [])]);
  }

  #suffix(): string {
    return this.c.chance(0.1) ? this.#own.suffix : "";
  }

  #rollups(depth: number): Form<string>[] {
    const { c } = this;
    const { counter_rollups, gauge_rollups } = this.#own;
    const any = [...counter_rollups, ...gauge_rollups];
    return [
      [4, () => `${c.pick(counter_rollups)}(${this.moved(this.windowed(c.pick(COUNTERS)))})`],
      [5, () => `${c.pick(gauge_rollups)}(${this.moved(this.windowed(c.pick(GAUGES)))})`],
      [1, () => `${c.pick(gauge_rollups)}(${this.moved(this.windowed())})`],
      [2, () => `${c.pick(any)}(${this.moved(this.subquery(depth))})`],
      [1, () => `quantile_over_time(${c.pick(this.#own.phis)}, ${this.range(depth)})`],
    ];
  }

  /** The best of all series: outside of everything else, because which of two equal ones is better is nowhere said. */
  #best(): string {
    const { c } = this;
    const call = (): string => `(${c.pick(this.#own.counts)}, ${this.vector(2)})`;
    return this.#form("best", 2, [
      [1, () => `${c.pick(this.#own.best)}${call()}${grouping(c)}`],
      [1, () => `${c.pick(this.#own.best)}${grouping(c)} ${call()}`],
    ]);
  }

  #aggregate(depth: number): string {
    const { c } = this;
    const by = grouping(c);
    const arg = this.vector(depth - 1);
    const { folds, phis } = this.#own;
    return this.#form("aggregate", depth, [
      [4, () => `${c.pick(folds)}${by} (${arg})`],
      [4, () => `${c.pick(folds)}(${arg})${by}`],
      [1, () => `quantile${by} (${c.pick(phis)}, ${arg})`],
      [1, () => `count_values${by} ("v", round(clamp_max(${arg}, 1e6), 100))`],
    ]);
  }

  #call(depth: number): string {
    const { c } = this;
    const arg = this.vector(depth - 1);
    return this.#form("call", depth, [
      [4, () => `${c.pick(this.#own.maths)}(${arg})${this.#suffix()}`],
      [1, () => `clamp(${arg}, ${c.pick(NUMBERS)}, ${c.pick(NUMBERS)})`],
      [1, () => `${c.pick(["clamp_min", "clamp_max"])}(${arg}, ${this.scalar(1)})`],
      [1, () => `round(${arg}, ${c.pick(["0.1", "5", "0.25", "100"])})`],
    ]);
  }

  #withNumber(depth: number): string {
    const { c } = this;
    const { logical, left_numbers } = this.#own;
    const op = logical.length > 0 && c.chance(0.15) ? c.pick(logical) : this.operator();
    if (c.chance(0.25)) return `${c.pick(left_numbers)} ${op} ${this.inner(depth)}`;
    return `${this.inner(depth)} ${op} ${c.chance(0.7) ? c.pick(NUMBERS) : `(${this.scalar(depth - 1)})`}`;
  }

  /** Two vectors with an operator between them, made so that something usually matches. */
  #matched(depth: number): string {
    const { c } = this;
    const by = ` by (${c.some(COMMON, 3).join(", ")})`;
    const metric = anyMetric(c);
    const own = labelsOf(metric).slice(COMMON.length);
    const join = this.operator();
    const { logical } = this.#own;
    const op = logical.length > 0 && c.chance(0.3) ? c.pick(logical) : join;
    const set = c.pick(["and", "or", "unless"]);
    return this.#form("matched", depth, [
      [2, () => `${selector(c, metric)} ${op} ${this.moved(selector(c, metric))}`],
      [2, () => `sum${by} (${this.vector(depth - 1)}) ${op} max${by} (${this.vector(depth - 1)})`],
      [
        2,
        () => `${selector(c, metric)} ${join} ignoring (${own.join(", ")}) group_left ${selector(c, c.pick(GAUGES))}`,
      ],
      [2, () => `${selector(c, metric)} ${join} on (instance) group_left (${c.pick(["", "minutes"])}) svc_instance_up`],
      [1, () => `svc_instance_up ${join} on (instance) group_right (${c.pick(["", "region"])}) ${selector(c, metric)}`],
      [2, () => `${selector(c, metric)} ${set} ${selector(c, metric)}`],
      [2, () => `${this.inner(depth)} ${set} on (${c.some([...COMMON, "status"], 2).join(", ")}) ${this.inner(depth)}`],
      [1, () => `${this.inner(depth)} ${op} ${this.inner(depth)}`],
    ]);
  }

  #quantile(depth: number): string {
    const { c } = this;
    const rates = `${c.pick(["rate", "increase"])}(${this.windowed(BUCKETS)})`;
    const by = c.pick(this.#own.bucket_groups);
    return this.#form("quantile", depth, [
      [3, () => `histogram_quantile(${c.pick(this.#own.phis)}, sum by (${by}) (${rates}))`],
    ]);
  }

  /** What must be refused, or looks as if. */
  #mistake(): string {
    const { c } = this;
    const arg = this.vector(1);
    return c.pick([
      `unknown_function(${arg})`,
      `sum by (app) by (app) (${arg})`,
      `(${arg}`,
      `${arg})`,
      `topk("1", ${arg})`,
      `label_replace(${arg}, "new", "$1", "app", "(")`,
      `clamp(${arg}, 1)`,
      `${selector(c)}[5m]`,
      `"text"`,
      `${arg} + on (app) group_left on (app) ${arg}`,
      `${arg} or on (app) group_left ${arg}`,
      `rate(${selector(c)}[5m] offset)`,
      `{app="app-000", app="app-001"}`,
      `1 ${c.pick(COMPARISONS)} 2`,
      ...this.#own.mistakes(this),
    ]);
  }
}
