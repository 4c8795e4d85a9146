/** Operators with their precedence, and keywords that are names everywhere else. */

export interface Operator {
  priority: number;
  kind: "arithmetic" | "compare" | "set" | "choice" | "trim";
  right?: true;
}

const arithmetic = (priority: number): Operator => ({ priority, kind: "arithmetic" });
const COMPARE: Operator = { priority: 3, kind: "compare" };

export const OPERATORS: Record<string, Operator> = {
  default: { priority: -1, kind: "choice" },
  if: { priority: 0, kind: "choice" },
  ifnot: { priority: 0, kind: "choice" },
  or: { priority: 1, kind: "set" },
  and: { priority: 2, kind: "set" },
  unless: { priority: 2, kind: "set" },
  "==": COMPARE,
  "!=": COMPARE,
  ">": COMPARE,
  "<": COMPARE,
  ">=": COMPARE,
  "<=": COMPARE,
  // What is left of a native histogram below a value, and above one; strict dialect.
  "</": { priority: 3, kind: "trim" },
  ">/": { priority: 3, kind: "trim" },
  "+": arithmetic(4),
  "-": arithmetic(4),
  "*": arithmetic(5),
  "/": arithmetic(5),
  "%": arithmetic(5),
  atan2: arithmetic(5),
  "^": { priority: 6, kind: "arithmetic", right: true },
};

export const LOWEST = -1;
export const MULTIPLY = 5;
export const POWER = 6;

export function operator(name: string): Operator | undefined {
  const lower = name.toLowerCase();
  return Object.hasOwn(OPERATORS, lower) ? OPERATORS[lower] : undefined;
}

const MODIFIERS = new Set(["on", "ignoring", "group_left", "group_right", "bool", "prefix"]);

/** Keywords after an operator; a metric of that name needs parentheses there. */
export function reservedAfterOperator(name: string): boolean {
  return MODIFIERS.has(name.toLowerCase());
}
