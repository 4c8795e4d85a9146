/**
 * What may reach a person's terminal. Names, logs, events and errors hold what others wrote, and a terminal obeys escape
 * sequences whoever wrote them: they can hide lines, set titles, answer in the person's name. So control characters are
 * printed as what they are (`\x1b`), and only the styles that this program adds itself work.
 */
import { styleText } from "node:util";

/**
 * Stands for the escape character in styles of our own. Another one in each process, so that nothing that was written
 * before holds it; Node's own generator of secrets would take longer to load than most commands run.
 */
const OWN_ESCAPE = `\u0000${Math.random()}\u0000`;
const TEXT = "-";

/**
 * All control characters but tab and line feed, the C1 ones too, which some terminals obey; the marks that turn the
 * direction of text around, which make a line read as another one; and line and paragraph separators.
 */
const CONTROLS = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

type Style = Parameters<typeof styleText>[0];

/** Text in a style, for what is printed through `terminalText`. */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  const [open = "", close = ""] = styleText(style, TEXT, { stream }).split(TEXT);
  const own = (codes: string): string => codes.replaceAll("\u001b", OWN_ESCAPE);
  return `${own(open)}${text}${own(close)}`;
}

/** Text with the styles of `styled`, and nothing else that a terminal would obey. */
export const terminalText = (text: string): string => text.split(OWN_ESCAPE).map(visible).join("\u001b");

/** Text as it is, with the styles of `styled`: for whoever asked for it raw. */
export const ownStyles = (text: string): string => text.replaceAll(OWN_ESCAPE, "\u001b");

/** Text in which every control character can be seen. A carriage return before a line feed is only the end of a line. */
export const visible = (text: string): string => text.replaceAll(/\r+(?=\n|$)/g, "").replaceAll(CONTROLS, escaped);

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}

/** JSON has escapes of its own for these, which every reader of JSON takes back. */
export const jsonText = (data: unknown, indent?: number): string =>
  (JSON.stringify(data, undefined, indent) ?? "null").replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** One or more lines for a person, on stdout. */
export const print = (text: string): void => void process.stdout.write(`${terminalText(text)}\n`);

/** The same on stderr. */
export const printError = (text: string): void => void process.stderr.write(`${terminalText(text)}\n`);

/** One line of JSON, for programs. */
export const printJsonLine = (data: unknown): void => void process.stdout.write(`${jsonText(data)}\n`);

/** JSON for programs, on several lines. */
export const printJson = (data: unknown): void => void process.stdout.write(`${jsonText(data, 2)}\n`);
