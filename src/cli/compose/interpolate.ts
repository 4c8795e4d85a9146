/** Variables in a compose file: `$NAME`, `${NAME:-default}`, `${NAME:?why}`, `${NAME:+instead}`, and `$$`. */
import { UsageError } from "../verb.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

const NAME = /^[A-Za-z_]\w*/;
/** Limits the nesting of `${A:-${B:-…}}`. */
const MOST_NESTED = 10;

/** The text with its variables replaced. */
export function interpolate(text: string, variables: Variables, where: string, depth = 0): string {
  if (depth > MOST_NESTED) throw new UsageError(`${where}: variables are nested more than ${MOST_NESTED} deep`);
  let made = "";
  let at = 0;
  for (let dollar = text.indexOf("$"); dollar >= 0; dollar = text.indexOf("$", at)) {
    const { end, value } = variableAt(text, dollar, { variables, where, depth });
    made += text.slice(at, dollar) + value;
    at = end;
  }
  return made + text.slice(at);
}

interface Within {
  variables: Variables;
  where: string;
  depth: number;
}

/** The value of the variable at this dollar sign, and the offset behind it. */
function variableAt(text: string, dollar: number, within: Within): { end: number; value: string } {
  const start = dollar + 1;
  if (text[start] === "$") return { end: start + 1, value: "$" };
  if (text[start] === "{") {
    const end = closing(text, start);
    if (end < 0) throw new UsageError(`${within.where}: a variable is never closed in ${text}`);
    return { end: end + 1, value: expression(text.slice(start + 1, end), within) };
  }
  const [plain] = NAME.exec(text.slice(start)) ?? [];
  if (plain === undefined) throw new UsageError(`${within.where}: a single $ in ${text}: write $$ for a dollar sign`);
  return { end: start + plain.length, value: within.variables[plain] ?? "" };
}

/** The offset of the brace that closes the one at `open`. */
function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{" && (at === open || text[at - 1] === "$")) depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return -1;
}

function expression(body: string, { variables, where, depth }: Within): string {
  const [, name = "", colon = "", operator, word = ""] = /^([A-Za-z_]\w*)(?:(:?)([-?+])([\s\S]*))?$/.exec(body) ?? [];
  if (name === "") throw new UsageError(`${where}: \${${body}} is no variable such as \${NAME} or \${NAME:-default}`);
  const value = variables[name];
  const is_set = value !== undefined && (colon === "" || value !== "");
  const given = (): string => interpolate(word, variables, where, depth + 1);
  if (operator === "+") return is_set ? given() : "";
  if (is_set || operator === undefined) return value ?? "";
  if (operator === "-") return given();
  throw new UsageError(`${where}: ${name} is not set${why(given())}; set it in .env or in the environment`);
}

const why = (text: string): string => (text === "" ? "" : `: ${text}`);
