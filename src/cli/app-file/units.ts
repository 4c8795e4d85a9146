/** Parses sizes, durations and command lines of an app file. */

/** Adds the key's unit to a bare number. */
export function time(value: string | number, unit: "s" | "ms"): string {
  return typeof value === "number" || /^\d+$/.test(value) ? `${value}${unit}` : value;
}

/** `512mb`, `1gb`, or a bare number of megabytes. */
export function megabytes(value: string | number): number {
  const [, number = "0", unit = "m"] = /^(\d+)\s*([mg])?b?$/i.exec(String(value)) ?? [];
  return Number(number) * (unit.toLowerCase() === "g" ? 1024 : 1);
}

/** `10gb`, or a bare number of gigabytes. */
export function gigabytes(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const text = String(value as string);
  return /m/i.test(text) ? Math.ceil(megabytes(text) / 1024) : Number(/^\d+/.exec(text)?.[0] ?? 0);
}

/** Splits a command line like a shell, without expansion. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  // A quoted piece, an escaped character, space, or anything else.
  for (const [piece] of line.matchAll(/'[^']*'|"(?:\\.|[^"\\])*"|\\.|\s+|[^\s'"\\]+|['"\\]/g)) {
    if (/^\s/.test(piece)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    word = (word ?? "") + unquoted(piece);
  }
  return word === undefined ? words : [...words, word];
}

function unquoted(piece: string): string {
  if (piece.startsWith("'") && piece.length > 1) return piece.slice(1, -1);
  if (piece.startsWith('"') && piece.length > 1) return piece.slice(1, -1).replaceAll(/\\(["\\$`])/g, "$1");
  return piece.startsWith("\\") && piece.length > 1 ? piece.slice(1) : piece;
}
