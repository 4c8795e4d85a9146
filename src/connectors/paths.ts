/**
 * Validates paths of requests to a provider. Programs differ in how they interpret `..`, `%2f`, `//`, `\`, `;x` and the
 * like; a rule about `/admin` is useless if the provider sees `/admin` where the gateway sees something else. So an
 * ambiguous path is refused, not interpreted, and the checked path is forwarded unchanged.
 */
interface Fault {
  pattern: RegExp;
  problem: string;
}

/** Always refused. */
const NEVER: readonly Fault[] = [
  { pattern: /^(?!\/)/, problem: "does not begin with a slash" },
  { pattern: /[^!-~]|["<>\\^`{|}#?]/, problem: "holds a character that must be encoded" },
  { pattern: /%(?![0-9A-Fa-f]{2})/, problem: "holds a broken percent-encoding" },
  { pattern: /%(?:[01][0-9a-f]|7f)/i, problem: "holds an encoded control character" },
];

/** Allowed only for a connector with `encoded_paths` and without path rules. */
const AMBIGUOUS: readonly Fault[] = [
  { pattern: /\/\//, problem: "holds two slashes in a row" },
  { pattern: /;/, problem: "holds a semicolon" },
  { pattern: /%(?:2f|5c|25|3b|3f|23)/i, problem: "holds an encoded / \\ % ; ? or #" },
  { pattern: /%[0-9A-F]?[a-f]/, problem: "writes a percent-encoding in lower case" },
  {
    pattern: /%(?:3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A]|2[DE]|5F|7E)/,
    problem: "encodes a letter, digit or one of - . _ ~",
  },
  { pattern: /(?:\.|%20)(?:\/|$)/, problem: "has a segment that ends with a dot or a blank" },
];

/** More decodings than any server does. */
const DECODINGS = 8;

/** Why a path is not canonical, or undefined. */
export function pathProblem(path: string, { encoded }: { encoded: boolean }): string | undefined {
  return faultIn(NEVER, path) ?? decodedProblem(path, encoded) ?? (encoded ? undefined : faultIn(AMBIGUOUS, path));
}

const faultIn = (faults: readonly Fault[], path: string): string | undefined =>
  faults.find(({ pattern }) => pattern.test(path))?.problem;

function decodedProblem(path: string, encoded: boolean): string | undefined {
  let text = path;
  for (let i = 0; i < DECODINGS; i++) {
    if (hasDotSegment(text)) return "holds a `.` or `..` segment";
    if (/[\\\p{Cc}]/u.test(text)) return "holds an encoded backslash or control character";
    const decoded = decode(text);
    // At deeper levels, a percent sign may be plain text.
    if (decoded === undefined) return i === 0 ? "encodes bytes that are not UTF-8" : undefined;
    if (decoded === text) break;
    text = decoded;
  }
  // Some servers normalize look-alikes (full-width letters and slashes).
  if (!encoded && text.normalize("NFKC") !== text) return "holds a look-alike of a plain character";
  return undefined;
}

/** Also as seen by servers that strip `;parameters` or treat `\` as `/`. */
function hasDotSegment(text: string): boolean {
  return text
    .normalize("NFKC")
    .split(/[/\\]/)
    .some((segment) => /^\.{1,2}\s*(?:;|$)/.test(segment));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * A canonical path for comparison with block rules: decoded and case-folded, because some providers ignore case and
 * blocking too much is safer.
 */
export function foldedPath(path: string): string {
  return (decode(path) ?? path).normalize("NFKC").toLowerCase();
}
