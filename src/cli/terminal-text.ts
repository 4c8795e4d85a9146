/**
 * Sanitizes terminal output. Names, logs, events and errors hold untrusted text, and a terminal interprets its escape
 * sequences: they can hide lines, set titles, or type input. So control characters are printed escaped (`\x1b`), and
 * only the styles that this program adds itself work.
 */
import { styleText } from "node:util";

/**
 * Placeholder for the escape character in this program's styles. Random in each process, so that no other text has it;
 * loading `node:crypto` would take longer than most commands run.
 */
const OWN_ESCAPE = `\u0000${Math.random()}\u0000`;
const TEXT = "-";

/**
 * All control characters but tab and line feed, including C1, which some terminals interpret; bidirectional controls,
 * which reorder the visible text of a line; and line and paragraph separators.
 */
const CONTROLS = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

type Style = Parameters<typeof styleText>[0];

/** Styles text that is printed through `terminalText`. */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  const [open = "", close = ""] = styleText(style, TEXT, { stream }).split(TEXT);
  const own = (codes: string): string => codes.replaceAll("\u001b", OWN_ESCAPE);
  return `${own(open)}${text}${own(close)}`;
}

/** Text with the styles of `styled`, and no other escape sequences. */
export const terminalText = (text: string): string => text.split(OWN_ESCAPE).map(visible).join("\u001b");

/** Unescaped text with the styles of `styled`, for raw output. */
export const ownStyles = (text: string): string => text.replaceAll(OWN_ESCAPE, "\u001b");

/** Escapes control characters. A carriage return before a line feed is part of the line end. */
export const visible = (text: string): string => text.replaceAll(/\r+(?=\n|$)/g, "").replaceAll(CONTROLS, escaped);

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}

/** JSON with control characters as JSON escapes, which parsers decode. */
export const jsonText = (data: unknown, indent?: number): string =>
  (JSON.stringify(data, undefined, indent) ?? "null").replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** Prints text on stdout. */
export const print = (text: string): void => void process.stdout.write(`${terminalText(text)}\n`);

/** The same on stderr. */
export const printError = (text: string): void => void process.stderr.write(`${terminalText(text)}\n`);

/** One line of JSON, for programs. */
export const printJsonLine = (data: unknown): void => void process.stdout.write(`${jsonText(data)}\n`);

/** JSON for programs, on several lines. */
export const printJson = (data: unknown): void => void process.stdout.write(`${jsonText(data, 2)}\n`);
