import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";

/** Parses JSON with limited nesting and without duplicate keys, which parsers interpret differently. */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    // The engine's message may quote the body, which may contain a secret; only the position is used.
    const position = /position (\d+)/.exec((thrown as Error).message)?.[1];
    fail("malformed_json", `the body is not JSON${position ? ` (${place(text, Number(position))})` : ""}`);
  }
  inspect(text);
  return value;
}

function place(text: string, position: number): string {
  const before = text.slice(0, position).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;

/** Scans valid JSON once, looking only at strings and brackets. */
function inspect(text: string): void {
  /** One entry per open bracket: the keys seen so far for an object, undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 123: // {
        open.push(new Set());
        break;
      case 91: // [
        open.push(undefined);
        break;
      case 125: // }
      case 93: // ]
        open.pop();
        break;
      case QUOTE: {
        const end = endOfString(text, i);
        const keys = open.at(-1);
        if (keys && isKey(text, end)) addKey(keys, text.slice(i, end + 1));
        i = end;
        break;
      }
      default:
        continue;
    }
    if (open.length > LIMITS.json_depth) {
      fail("malformed_json", `the body is nested deeper than ${LIMITS.json_depth} levels (limit json_depth)`);
    }
  }
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text.charCodeAt(i) !== QUOTE) i += text.charCodeAt(i) === BACKSLASH ? 2 : 1;
  return i;
}

function isKey(text: string, end: number): boolean {
  let i = end + 1;
  while (text.charCodeAt(i) <= 32) i++;
  return text.charCodeAt(i) === COLON;
}

function addKey(keys: Set<string>, quoted: string): void {
  const key = quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
  if (keys.has(key)) fail("malformed_json", `the key ${JSON.stringify(key)} occurs twice in one object`);
  keys.add(key);
}
