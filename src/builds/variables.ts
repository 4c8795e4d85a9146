import { fail } from "#core/errors.ts";

const VALUE_CHARS = 65_536;
/** A dollar, a variable, or what is before the next one. No part is tried twice from the same place. */
const PIECE = /\\(\$)|\$\{(\w+)(?::?([-+])([^}$]*))?\}|\$(\w+)|[$\\]|[^$\\]+/g;

/** The variables of a Dockerfile: build arguments, and what `ENV` sets. */
export class Variables {
  readonly #values = new Map<string, string>();

  constructor(from: Iterable<readonly [string, string]> = []) {
    for (const [name, value] of from) this.#values.set(name, value);
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  set(name: string, value: string): void {
    this.#values.set(name, value);
  }

  entries(): Iterable<readonly [string, string]> {
    return this.#values.entries();
  }

  /** `$NAME`, `${NAME}`, `${NAME:-other}` and `${NAME:+other}`; `\$` is a dollar. */
  expand(text: string): string {
    let expanded = "";
    for (const found of text.matchAll(PIECE)) {
      expanded += this.#valueOf(found);
      // Looked at after each piece: variables that are made of each other grow without end.
      if (expanded.length > VALUE_CHARS)
        fail("build_refused", `a variable of the Dockerfile grows to more than ${VALUE_CHARS} characters`);
    }
    return expanded;
  }

  #valueOf([piece, dollar, braced, sign, other = "", bare]: RegExpExecArray): string {
    const name = braced ?? bare;
    if (name === undefined) return dollar ?? piece;
    const value = this.#values.get(name) ?? "";
    if (sign === "+") return value === "" ? "" : other;
    return value === "" && sign === "-" ? other : value;
  }
}

/** `A=1 B="two words"`, or the older `A two words`. */
export function assignments(rest: string, words: readonly string[]): [string, string][] {
  const [, name = "", value = ""] = /^(\w+)\s+(.*)$/s.exec(rest) ?? [];
  if (!words[0]?.includes("=")) return name === "" ? [] : [[name, value]];
  return words.flatMap((word): [string, string][] => {
    const at = word.indexOf("=");
    return at < 1 ? [] : [[word.slice(0, at), unquoted(word.slice(at + 1))]];
  });
}

const unquoted = (text: string): string =>
  text.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? "");
