/** `.dockerignore`, by Docker's rules: patterns from the context's root, `**`, `!` for exceptions; the last match decides. */

export interface IgnoreRules {
  /** Whether the path, relative to the context with `/`, is left out. */
  ignores(path: string): boolean;
  /** Whether an exception may include a file below an ignored folder. */
  readonly has_exceptions: boolean;
}

interface Rule {
  pattern: RegExp;
  exception: boolean;
}

export function ignoreRules(text: string): IgnoreRules {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#"))
    .flatMap((line) => ruleOf(line.trim()));
  return {
    has_exceptions: rules.some(({ exception }) => exception),
    ignores(path) {
      let ignored = false;
      // A rule for a folder applies to everything in it.
      const paths = path.split("/").map((_, index, parts) => parts.slice(0, index + 1).join("/"));
      for (const { pattern, exception } of rules)
        if (exception === ignored && paths.some((one) => pattern.test(one))) ignored = !exception;
      return ignored;
    },
  };
}

function ruleOf(line: string): Rule[] {
  const exception = line.startsWith("!");
  const cleaned = clean(exception ? line.slice(1).trim() : line);
  return cleaned === "" ? [] : [{ pattern: new RegExp(`^${source(cleaned)}$`, "s"), exception }];
}

/** As Go's `filepath.Clean` does; a leading slash means the context's root, as everything does. */
function clean(pattern: string): string {
  const parts: string[] = [];
  for (const part of pattern.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The pattern as a regular expression. */
function source(pattern: string): string {
  let found = "";
  for (let at = 0; at < pattern.length; at++) {
    const rest = pattern.slice(at);
    const special = SPECIAL.find(([word]) => rest.startsWith(word));
    const list = /^\[[^\]]+\]/.exec(rest)?.[0];
    if (special) {
      found += special[1];
      at += special[0].length - 1;
    } else if (list) {
      found += list.replace(/^\[!/, "[^");
      at += list.length - 1;
    } else if (rest.startsWith("\\") && rest.length > 1) {
      found += escaped(rest[1] ?? "");
      at++;
    } else found += escaped(rest[0] ?? "");
  }
  return found;
}

/** The longest comes first. */
const SPECIAL: readonly (readonly [string, string])[] = [
  ["**/", "(?:.*/)?"],
  ["**", ".*"],
  ["*", "[^/]*"],
  ["?", "[^/]"],
];

const escaped = (character: string): string => character.replace(/[.*+?^${}()|[\]\\/]/, "\\$&");
