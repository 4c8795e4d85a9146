/** Reads a rule file in Prometheus' format, and reports every problem with its line. */
import { messageOf } from "#core/assert.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { parse } from "#metrics/promql/parse.ts";
import { ALERT_LIMITS } from "../limits.ts";
import { parseTemplate } from "../template/parse.ts";
import { durationOf } from "../yaml/duration.ts";
import { type Fields, isTable, readYaml, type YamlDocument } from "../yaml/yaml.ts";
import type { AlertingRule, LabelMap, Rule, RuleGroup } from "./types.ts";

const FILE: Fields = ["groups"];
const GROUP: Fields = ["name", "interval", "limit", "rules"];
const RULE: Fields = ["record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"];
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export interface RuleFile {
  groups: RuleGroup[];
  /** Empty when the file is valid; each begins with its line. */
  problems: string[];
}

export async function parseRuleFile(text: string, dialect: Dialect): Promise<RuleFile> {
  if (Buffer.byteLength(text) > ALERT_LIMITS.rule_file_bytes)
    return { groups: [], problems: [`the file has more than ${ALERT_LIMITS.rule_file_bytes} bytes (rule_file_bytes)`] };
  const document = await readYaml(text);
  const reader = new RuleReader(document, dialect);
  const groups = document.problems.length === 0 ? reader.file(document.root) : [];
  return { groups, problems: document.problems };
}

type Path = readonly (string | number)[];

class RuleReader {
  readonly #document: YamlDocument;
  readonly #dialect: Dialect;
  #rules = 0;

  constructor(document: YamlDocument, dialect: Dialect) {
    this.#document = document;
    this.#dialect = dialect;
  }

  file(root: unknown): RuleGroup[] {
    if (root === null || root === undefined) return [];
    const file = this.#document.table(root, [], FILE);
    const groups = this.#document.list(file["groups"], ["groups"]).map((one, at) => this.#group(one, ["groups", at]));
    const names = new Set<string>();
    for (const [at, { name }] of groups.entries()) {
      if (names.has(name)) this.#problem(["groups", at, "name"], `group ${JSON.stringify(name)} is there twice`);
      names.add(name);
    }
    if (this.#rules > ALERT_LIMITS.rules_per_file)
      this.#problem(["groups"], `the file has more than ${ALERT_LIMITS.rules_per_file} rules (rules_per_file)`);
    return groups;
  }

  #problem(path: Path, text: string): void {
    this.#document.problem(path, text);
  }

  #group(value: unknown, path: Path): RuleGroup {
    const group = this.#document.table(value, path, GROUP);
    const name = this.#text(group["name"], [...path, "name"]) ?? "";
    if (name === "") this.#problem(path, "a group needs a name");
    const interval_ms = this.#duration(group["interval"], [...path, "interval"]);
    if (interval_ms !== undefined && interval_ms < ALERT_LIMITS.least_interval_ms)
      this.#problem([...path, "interval"], `interval is at least ${ALERT_LIMITS.least_interval_ms / 1000}s`);
    const limit = group["limit"] ?? 0;
    if (!Number.isSafeInteger(limit) || Number(limit) < 0)
      this.#problem([...path, "limit"], "limit must be a whole number");
    const rules = this.#document
      .list(group["rules"], [...path, "rules"])
      .map((rule, at) => this.#rule(rule, [...path, "rules", at]));
    this.#rules += rules.length;
    return { name, limit: Number(limit), rules, ...(interval_ms ? { interval_ms } : {}) };
  }

  #rule(value: unknown, path: Path): Rule {
    const rule = this.#document.table(value, path, RULE);
    const record = this.#text(rule["record"], [...path, "record"]);
    const alert = this.#text(rule["alert"], [...path, "alert"]);
    if ((record === undefined) === (alert === undefined))
      this.#problem(path, "a rule has either `record` or `alert`, with a name");
    const expr = this.#expr(rule["expr"], [...path, "expr"]);
    const labels = this.#labels(rule["labels"], [...path, "labels"]);
    if (record !== undefined) {
      for (const key of ["for", "keep_firing_for", "annotations"])
        if (rule[key] !== undefined) this.#problem([...path, key], `a recording rule has no ${key}`);
      if (!METRIC_NAME.test(record))
        this.#problem(
          [...path, "record"],
          `${JSON.stringify(record)} is no name of a metric: letters, digits, _ and :`,
        );
      return { kind: "recording", record, expr, labels };
    }
    return this.#alerting(rule, alert ?? "", { expr, labels }, path);
  }

  #alerting(
    rule: Record<string, unknown>,
    alert: string,
    common: { expr: string; labels: LabelMap },
    path: Path,
  ): AlertingRule {
    const annotations = this.#labels(rule["annotations"], [...path, "annotations"]);
    for (const [where, texts] of Object.entries({ labels: common.labels, annotations }))
      for (const [name, text] of Object.entries(texts)) this.#template(text, [...path, where, name]);
    return {
      kind: "alerting",
      alert,
      ...common,
      annotations,
      for_ms: this.#duration(rule["for"], [...path, "for"]) ?? 0,
      keep_firing_for_ms: this.#duration(rule["keep_firing_for"], [...path, "keep_firing_for"]) ?? 0,
    };
  }

  #template(text: string, path: Path): void {
    try {
      if (text.length > ALERT_LIMITS.template_chars)
        throw new Error(`it is longer than ${ALERT_LIMITS.template_chars} characters (template_chars)`);
      parseTemplate(text);
    } catch (thrown) {
      this.#problem(path, `the template cannot be read: ${messageOf(thrown)}`);
    }
  }

  #expr(value: unknown, path: Path): string {
    const text = typeof value === "number" ? String(value) : (this.#text(value, path) ?? "");
    if (text.trim() === "") {
      this.#problem(path, "a rule needs an expression (expr)");
      return "";
    }
    try {
      parse(text, this.#dialect);
    } catch (thrown) {
      const hint = this.#dialect === "promql" ? "; it was read as PromQL, dialect=metricsql knows more" : "";
      this.#problem(path, `expr cannot be read: ${messageOf(thrown)}${hint}`);
    }
    return text;
  }

  #labels(value: unknown, path: Path): LabelMap {
    if (value === undefined || value === null) return {};
    if (!isTable(value)) {
      this.#problem(path, `${path.at(-1)} must be a table`);
      return {};
    }
    const isLabels = path.at(-1) === "labels";
    const pairs = Object.entries(value).map(([name, one]): [string, string] => {
      if (!LABEL_NAME.test(name) || (isLabels && name === "__name__"))
        this.#problem([...path, name], `${JSON.stringify(name)} is no name of a label: letters, digits and _`);
      return [name, this.#document.scalar(one, [...path, name])];
    });
    return Object.fromEntries(pairs);
  }

  #text(value: unknown, path: Path): string | undefined {
    if (value === undefined || value === null || value === "") return undefined;
    return this.#document.scalar(value, path);
  }

  #duration(value: unknown, path: Path): number | undefined {
    if (value === undefined || value === null || value === "") return undefined;
    const ms = durationOf(value);
    if (ms === undefined) this.#problem(path, `${JSON.stringify(value)} is no duration such as 30s, 5m or 1h30m`);
    return ms;
  }
}
