/** Matchers of labels as Alertmanager writes them: `severity="page"`, `app=~"web|api"`. */
import { compileRegex, regexError } from "#metrics/regex.ts";
import type { LabelMap } from "../rules/types.ts";

export interface LabelMatcher {
  name: string;
  op: "=" | "!=" | "=~" | "!~";
  value: string;
}

export type Matchers = readonly LabelMatcher[];

const FORM = /^\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|[^"{}]*?)\s*$/;

/** Throws an error that says what is wrong. */
export function parseMatcher(text: string): LabelMatcher {
  const [, name = "", op = "=", value = ""] = FORM.exec(text) ?? [];
  if (name === "") throw new Error(`${JSON.stringify(text)} is no matcher such as severity="page" or app=~"web|api"`);
  const plain = value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
  const problem = op.endsWith("~") ? regexError(plain) : undefined;
  if (problem !== undefined) throw new Error(`${JSON.stringify(text)}: ${problem}`);
  return { name, op: op as LabelMatcher["op"], value: plain };
}

export const matcherText = ({ name, op, value }: LabelMatcher): string => `${name}${op}${JSON.stringify(value)}`;

/** A label that is absent is the empty text. */
export function matchesAll(matchers: Matchers, labels: LabelMap): boolean {
  return matchers.every(({ name, op, value }) => {
    const label = labels[name] ?? "";
    const isLike = op.endsWith("~") ? compileRegex(value)(label) : label === value;
    return isLike !== op.startsWith("!");
  });
}
