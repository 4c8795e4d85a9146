/** Reads a file of unit tests of rules, in promtool's format. */

import { messageOf } from "#core/assert.ts";
import type { LabelMap } from "../rules/types.ts";
import { durationOf } from "../yaml/duration.ts";
import { type Fields, isTable, type Path, readYaml, type YamlDocument } from "../yaml/yaml.ts";
import { parseSeriesLabels, parseValues } from "./series.ts";

const FILE: Fields = ["rule_files", "evaluation_interval", "group_eval_order", "tests", "fuzzy_compare"];
const TEST: Fields = [
  "name",
  "interval",
  "input_series",
  "alert_rule_test",
  "promql_expr_test",
  "external_labels",
  "external_url",
];

export interface TestFile {
  rule_files: string[];
  evaluation_interval_ms: number;
  group_eval_order: string[];
  tests: RuleTest[];
  problems: string[];
}

export interface RuleTest {
  name: string;
  interval_ms: number;
  input: { labels: LabelMap; values: (number | undefined)[] }[];
  alerts: AlertCase[];
  exprs: ExprCase[];
  external_labels: LabelMap;
  external_url: string;
}

export interface AlertCase {
  eval_time_ms: number;
  alertname: string;
  expected: { labels: LabelMap; annotations: LabelMap }[];
}

export interface ExprCase {
  expr: string;
  eval_time_ms: number;
  expected: { labels: LabelMap; value: number }[];
}

const MINUTE_MS = 60_000;

export async function parseTestFile(text: string): Promise<TestFile> {
  const document = await readYaml(text);
  const reader = new Reader(document);
  const file = document.problems.length === 0 ? document.table(document.root ?? {}, [], FILE) : {};
  const evaluation_interval_ms = reader.duration(file, "evaluation_interval", []) ?? MINUTE_MS;
  if (!(evaluation_interval_ms > 0))
    document.problem(["evaluation_interval"], "evaluation_interval must be longer than 0");
  return {
    rule_files: reader.texts(file, "rule_files", []),
    evaluation_interval_ms,
    group_eval_order: reader.texts(file, "group_eval_order", []),
    tests: document
      .list(file["tests"], ["tests"])
      .map((test, at) => reader.test(test, ["tests", at], evaluation_interval_ms)),
    problems: document.problems,
  };
}

class Reader {
  readonly #document: YamlDocument;

  constructor(document: YamlDocument) {
    this.#document = document;
  }

  texts(table: Record<string, unknown>, key: string, path: Path): string[] {
    return this.#document
      .list(table[key], [...path, key])
      .map((one, at) => this.#document.scalar(one, [...path, key, at]));
  }

  duration(table: Record<string, unknown>, key: string, path: Path): number | undefined {
    const value = table[key];
    if (value === undefined || value === null) return undefined;
    const ms = durationOf(value);
    if (ms === undefined) this.#document.problem([...path, key], `${key} is no duration such as 30s or 5m`);
    return ms;
  }

  test(value: unknown, path: Path, otherwise_ms: number): RuleTest {
    const test = this.#document.table(value, path, TEST);
    const list = <T>(key: string, read: (one: unknown, at: Path) => T): T[] =>
      this.#document.list(test[key], [...path, key]).map((one, at) => read(one, [...path, key, at]));
    return {
      name: this.#document.scalar(test["name"], [...path, "name"]),
      interval_ms: this.duration(test, "interval", path) ?? otherwise_ms,
      input: list("input_series", (one, at) => this.#input(one, at)),
      alerts: list("alert_rule_test", (one, at) => this.#alertCase(one, at)),
      exprs: list("promql_expr_test", (one, at) => this.#exprCase(one, at)),
      external_labels: this.#labels(test["external_labels"], [...path, "external_labels"]),
      external_url: this.#document.scalar(test["external_url"], [...path, "external_url"]),
    };
  }

  #input(value: unknown, path: Path): RuleTest["input"][number] {
    const input = this.#document.table(value, path, ["series", "values"]);
    const series = this.#document.scalar(input["series"], [...path, "series"]);
    const values = this.#document.scalar(input["values"], [...path, "values"]);
    return {
      labels: this.#read([...path, "series"], () => parseSeriesLabels(series)) ?? {},
      values: this.#read([...path, "values"], () => parseValues(values)) ?? [],
    };
  }

  #alertCase(value: unknown, path: Path): AlertCase {
    const test = this.#document.table(value, path, ["eval_time", "alertname", "exp_alerts"]);
    const alertname = this.#document.scalar(test["alertname"], [...path, "alertname"]);
    if (alertname === "") this.#document.problem(path, "an alert_rule_test needs an alertname");
    const expected = this.#document.list(test["exp_alerts"], [...path, "exp_alerts"]).map((one, at) => {
      const here = [...path, "exp_alerts", at];
      const alert = this.#document.table(one, here, ["exp_labels", "exp_annotations"]);
      return {
        labels: { ...this.#labels(alert["exp_labels"], [...here, "exp_labels"]), alertname },
        annotations: this.#labels(alert["exp_annotations"], [...here, "exp_annotations"]),
      };
    });
    return { eval_time_ms: this.duration(test, "eval_time", path) ?? 0, alertname, expected };
  }

  #exprCase(value: unknown, path: Path): ExprCase {
    const test = this.#document.table(value, path, ["expr", "eval_time", "exp_samples"]);
    const expected = this.#document.list(test["exp_samples"], [...path, "exp_samples"]).map((one, at) => {
      const here = [...path, "exp_samples", at];
      const sample = this.#document.table(one, here, ["labels", "value", "histogram"]);
      const text = this.#document.scalar(sample["labels"], [...here, "labels"]);
      const number = this.#document.scalar(sample["value"] ?? "0", [...here, "value"]);
      return {
        labels: this.#read([...here, "labels"], () => parseSeriesLabels(text)) ?? {},
        value: this.#read([...here, "value"], () => parseValues(goNumber(number))[0]) ?? Number.NaN,
      };
    });
    return {
      expr: this.#document.scalar(test["expr"], [...path, "expr"]),
      eval_time_ms: this.duration(test, "eval_time", path) ?? 0,
      expected,
    };
  }

  #labels(value: unknown, path: Path): LabelMap {
    if (value === undefined || value === null) return {};
    if (!isTable(value)) {
      this.#document.problem(path, `${path.at(-1)} must be a table`);
      return {};
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.#document.scalar(one, [...path, name])]),
    );
  }

  #read<T>(path: Path, work: () => T): T | undefined {
    try {
      return work();
    } catch (thrown) {
      this.#document.problem(path, messageOf(thrown).split("\n")[0] ?? "");
      return undefined;
    }
  }
}

/** YAML's `.inf` and `.nan`. */
const goNumber = (text: string): string => text.replace(/\.(?=inf|nan)/i, "").trim();
