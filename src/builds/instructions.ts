/** Reads a Dockerfile as instructions: comments and continued lines as Docker has them, and here-documents. */
import { fail } from "#core/errors.ts";

export interface Heredoc {
  /** The operator as written: `<<EOF`, `<<-"END"`. */
  redirection: string;
  name: string;
  /** Variables in it are not expanded. */
  quoted: boolean;
  /** As the lines are written, and with their tabs removed for `<<-`. */
  raw: string;
  body: string;
}

export interface Instruction {
  /** `RUN`, in capitals. */
  word: string;
  /** What follows it, continued lines joined. */
  rest: string;
  heredocs: Heredoc[];
  /** The lines of the file, with comments before them. */
  lines: string[];
}

const WITH_HEREDOCS = new Set(["RUN", "COPY", "ADD"]);
const TOKEN = /^\d*<<(-?)(["']?)([^<>"'|;&()\s]+)\2$/;

export function readInstructions(text: string): Instruction[] {
  const all = text.split(/\r?\n/);
  const continued = /^#\s*escape\s*=\s*`/im.test(text) ? "`" : "\\";
  const found: Instruction[] = [];
  for (let at = 0; at < all.length; ) {
    const { joined, next } = joinLines(all, at, continued);
    const [, word = "", rest = ""] = /^\s*(\w+)\s*(.*)$/s.exec(joined) ?? [];
    let end = next;
    const heredocs = tokensOf(word.toUpperCase(), rest).map((token) => {
      const read = readBody(all, end, token);
      end = read.next;
      return read.heredoc;
    });
    found.push({ word: word.toUpperCase(), rest: rest.trim(), heredocs, lines: all.slice(at, end) });
    at = end;
  }
  return found;
}

/** The next instruction with its continued lines joined, and the line after it. */
function joinLines(all: readonly string[], from: number, continued: string): { joined: string; next: number } {
  const parts: string[] = [];
  for (let at = from; at < all.length; at++) {
    const line = (all[at] ?? "").trimEnd();
    if (isLeftOut(line)) continue;
    if (!line.endsWith(continued)) return { joined: [...parts, line].join(" "), next: at + 1 };
    parts.push(line.slice(0, -1));
  }
  return { joined: parts.join(" "), next: all.length };
}

/** Also within an instruction that goes on. */
const isLeftOut = (line: string): boolean => /^\s*(#|$)/.test(line);

/** Words with their quotes. */
export const wordsOf = (text: string): string[] =>
  text.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\]|["'\\])+/g) ?? [];

const tokensOf = (word: string, rest: string): string[] =>
  WITH_HEREDOCS.has(word) && !/^(?:--\S+\s+)*\[/.test(rest) ? wordsOf(rest).filter((one) => TOKEN.test(one)) : [];

function readBody(all: readonly string[], from: number, token: string): { heredoc: Heredoc; next: number } {
  const [, dash, quote, name = ""] = TOKEN.exec(token) ?? [];
  const isEnd = (line: string): boolean => (dash ? line.replace(/^\t+/, "") : line) === name;
  let end = from;
  while (end < all.length && !isEnd(all[end] ?? "")) end++;
  if (end === all.length)
    fail("build_refused", `the Dockerfile begins a here-document ${token} in line ${from} that does not end`, {
      hint: `end it with a line that is ${name} and nothing else`,
    });
  const lines = all.slice(from, end).map((line) => `${line}\n`);
  const body = lines.map((line) => (dash ? line.replace(/^\t+/, "") : line)).join("");
  return {
    heredoc: { redirection: token, name, quoted: quote !== "", raw: `${lines.join("")}${all[end]}\n`, body },
    next: end + 1,
  };
}
