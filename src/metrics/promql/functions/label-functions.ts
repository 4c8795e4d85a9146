import { compileRegex, regexError, replaceAll, replaceWhole } from "../../regex.ts";
import type { Labels } from "../../source.ts";
import { NAME } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Row } from "../frame.ts";
import { dropLabels, dropName, keepLabels, labelValue, setLabel } from "../labels.ts";
import { parseFloatStrict } from "../numbers.ts";
import {
  atLeast,
  type Call,
  type Definition,
  exactly,
  pairsOf,
  rowsOf,
  stringOf,
  stringsOf,
  wholeOf,
} from "./apply.ts";

/** Functions that change labels and leave values alone. */

function relabel(call: Call, change: (labels: Labels) => Labels): Row[] {
  const rows = rowsOf(call, 0);
  for (const row of rows) row.labels = change(row.labels);
  return rows;
}

/** Keeps or drops the labels that are named. */
function byNames(change: (labels: Labels, names: readonly string[]) => Labels): Definition {
  return atLeast(1, (call) => {
    const names = stringsOf(call, 1);
    return relabel(call, (labels) => change(labels, names));
  });
}

/** One pair after the other, so a later one can undo an earlier. */
function labelSet(call: Call): Row[] {
  const pairs = pairsOf(call, 1);
  return relabel(call, (labels) => pairs.reduce((out, [name, value]) => setLabel(out, name, value), labels));
}

/** A label that is absent copies nothing and removes nothing. */
function labelCopy(move: boolean): Definition {
  return atLeast(1, (call) => {
    const pairs = pairsOf(call, 1);
    return relabel(call, (labels) =>
      pairs.reduce((out, [from, to]) => {
        const value = labelValue(out, from);
        if (value === "") return out;
        const copied = setLabel(out, to, value);
        return move && from !== to ? setLabel(copied, from, "") : copied;
      }, labels),
    );
  });
}

function changeCase(change: (text: string) => string): Definition {
  return atLeast(2, (call) => {
    const names = stringsOf(call, 1);
    return relabel(call, (labels) =>
      names.reduce((out, name) => setLabel(out, name, change(labelValue(out, name))), labels),
    );
  });
}

/** Values that are not in the list stay. */
function labelMap(call: Call): Row[] {
  const name = stringOf(call, 1);
  const values = new Map(pairsOf(call, 2));
  return relabel(call, (labels) => {
    const value = labelValue(labels, name);
    return setLabel(labels, name, values.get(value) ?? value);
  });
}

/** An empty result removes the label. */
function labelJoin(call: Call): Row[] {
  const to = stringOf(call, 1);
  const separator = stringOf(call, 2);
  const from = stringsOf(call, 3);
  return relabel(call, (labels) => setLabel(labels, to, from.map((name) => labelValue(labels, name)).join(separator)));
}

function checkRegex(pattern: string): void {
  const wrong = regexError(pattern);
  if (wrong !== undefined)
    throw executionError(`the regular expression ${JSON.stringify(pattern)} is invalid: ${wrong}`);
}

/** The whole value must match. */
function labelReplace(call: Call): Row[] {
  const [to, replacement, from, pattern] = [stringOf(call, 1), stringOf(call, 2), stringOf(call, 3), stringOf(call, 4)];
  checkRegex(pattern);
  const replace = replaceWhole(pattern, replacement);
  return relabel(call, (labels) => {
    const value = replace(labelValue(labels, from));
    return value === undefined ? labels : setLabel(labels, to, value);
  });
}

/** Every match inside the value, not the whole value. */
function labelTransform(call: Call): Row[] {
  const [name, pattern, replacement] = [stringOf(call, 1), stringOf(call, 2), stringOf(call, 3)];
  checkRegex(pattern);
  const replace = replaceAll(pattern, replacement);
  return relabel(call, (labels) => {
    const value = replace(labelValue(labels, name));
    return value === undefined ? labels : setLabel(labels, name, value);
  });
}

/** Series whose label matches, or does not. */
function labelMatch(wanted: boolean): Definition {
  return exactly(3, (call) => {
    const name = stringOf(call, 1);
    const pattern = stringOf(call, 2);
    checkRegex(pattern);
    const matches = compileRegex(pattern);
    return rowsOf(call, 0).filter((row) => matches(labelValue(row.labels, name)) === wanted);
  });
}

function labelsEqual(call: Call): Row[] {
  const [first = "", ...rest] = stringsOf(call, 1);
  return rowsOf(call, 0).filter((row) =>
    rest.every((name) => labelValue(row.labels, name) === labelValue(row.labels, first)),
  );
}

/** The label's value as the value, where the series has one. */
function labelValueFunction(call: Call): Row[] {
  const name = stringOf(call, 1);
  const rows = rowsOf(call, 0);
  for (const row of rows) {
    const value = parseFloatStrict(labelValue(row.labels, name)) ?? Number.NaN;
    if (!call.expr.keepMetricNames) row.labels = dropName(row.labels);
    for (let i = 0; i < row.values.length; i++) if (!Number.isNaN(row.values[i] as number)) row.values[i] = value;
  }
  return rows;
}

/** Parts of a dotted name. */
function graphiteGroup(call: Call): Row[] {
  const groups = call.args.slice(1).map((_, i) => wholeOf(call, i + 1));
  return relabel(call, (labels) => {
    const parts = labelValue(labels, NAME).split(".");
    return setLabel(labels, NAME, groups.map((group) => parts[group] ?? "").join("."));
  });
}

/** Labels that all series share say nothing, so they go; the name is one of them. */
function dropCommonLabels(call: Call): Row[] {
  const rows = call.args.flat();
  const counts = new Map<string, number>();
  for (const { labels } of rows) {
    for (let i = 0; i < labels.length; i += 2) {
      const pair = `${labels[i]}\u{10ffff}${labels[i + 1]}`;
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
  }
  const common = [...counts]
    .filter(([, n]) => n === rows.length)
    .map(([pair]) => pair.slice(0, pair.indexOf("\u{10ffff}")));
  for (const row of rows) row.labels = dropLabels(row.labels, common);
  return rows;
}

export const LABEL_FUNCTIONS: Record<string, Definition> = {
  drop_common_labels: atLeast(1, dropCommonLabels),
  label_copy: labelCopy(false),
  label_del: byNames(dropLabels),
  label_graphite_group: atLeast(2, graphiteGroup),
  label_join: atLeast(3, labelJoin),
  label_keep: byNames(keepLabels),
  label_lowercase: changeCase((text) => text.toLowerCase()),
  label_map: atLeast(2, labelMap),
  label_match: labelMatch(true),
  label_mismatch: labelMatch(false),
  label_move: labelCopy(true),
  label_replace: exactly(5, labelReplace),
  label_set: atLeast(1, labelSet),
  label_transform: exactly(4, labelTransform),
  label_uppercase: changeCase((text) => text.toUpperCase()),
  label_value: exactly(2, labelValueFunction),
  labels_equal: atLeast(3, labelsEqual),
};
