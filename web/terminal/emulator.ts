/** Carries out what a program writes to its terminal: the part of xterm's language that programs of today speak. */
import { Screen } from "./screen.ts";
import { restyled } from "./style.ts";

type State = "ground" | "escape" | "csi" | "text" | "charset" | "ignore";

/** Line-drawing characters (DEC special graphics). */
const LETTERS = "jklmnqtuvwxa~`";
const LINES = new Map(Array.from("┘┐┌└┼─├┤┴┬│▒·◆", (line, at) => [LETTERS.charAt(at), line]));
/** Maximum length of an escape sequence. */
const LONGEST = 4096;

export class Emulator {
  readonly screen: Screen;
  title = "";
  /** Responses of the terminal to queries. */
  readonly #answer: (text: string) => void;
  readonly #decoder = new TextDecoder();
  #state: State = "ground";
  #collected = "";
  #drawing = false;

  constructor(rows: number, cols: number, answer: (text: string) => void) {
    this.screen = new Screen(rows, cols);
    this.#answer = answer;
  }

  write(bytes: Uint8Array): void {
    for (const char of this.#decoder.decode(bytes, { stream: true })) this.#take(char);
  }

  #take(char: string): void {
    if (this.#state === "ground") this.#plain(char);
    else if (this.#state === "escape") this.#escape(char);
    else if (this.#state === "charset") {
      this.#drawing = char === "0";
      this.#state = "ground";
    } else if (this.#state === "ignore") this.#state = "ground";
    else if (this.#state === "csi") this.#inCsi(char);
    else this.#inText(char);
  }

  #plain(char: string): void {
    if (char < " " || char === "\u007f") this.#control(char);
    else this.screen.write(this.#drawing ? (LINES.get(char) ?? char) : char);
  }

  #control(char: string): void {
    const { screen } = this;
    if (char === "\u001b") this.#begin("escape");
    else if (char === "\r") screen.step(0, -screen.cols);
    else if (char === "\n" || char === "\v" || char === "\f") screen.feed();
    else if (char === "\b") screen.step(0, -1);
    else if (char === "\t") screen.step(0, 8 - (screen.col % 8));
    else if (char === "\u000e") this.#drawing = true;
    else if (char === "\u000f") this.#drawing = false;
  }

  #begin(state: State): void {
    this.#state = state;
    this.#collected = "";
  }

  #escape(char: string): void {
    const { screen } = this;
    this.#state = "ground";
    const next: Record<string, State> = {
      "[": "csi",
      "]": "text",
      P: "text",
      _: "text",
      "^": "text",
      X: "text",
      "(": "charset",
      ")": "ignore",
      "#": "ignore",
      "%": "ignore",
    };
    const state = next[char];
    if (state) {
      this.#begin(state);
      return;
    }
    const simple: Record<string, () => void> = {
      "7": () => screen.save(),
      "8": () => screen.restore(),
      D: () => screen.feed(),
      E: () => {
        screen.feed();
        screen.step(0, -screen.cols);
      },
      M: () => screen.reverseFeed(),
      c: () => screen.reset(),
    };
    simple[char]?.();
  }

  #inCsi(char: string): void {
    // Control characters may occur inside a sequence.
    if (char < " ") {
      this.#control(char);
      return;
    }
    if (char >= "@" && char <= "~") {
      this.#state = "ground";
      this.#csi(char, this.#collected);
    } else if (this.#collected.length < LONGEST) this.#collected += char;
    else this.#state = "ground";
  }

  /** A title or another string command; it ends with BEL or ST. */
  #inText(char: string): void {
    if (char === "\u0007" || char === "\u001b") {
      const title = /^[02];(.*)$/s.exec(this.#collected)?.[1];
      if (title !== undefined) this.title = title.slice(0, 200);
      this.#begin(char === "\u0007" ? "ground" : "ignore");
    } else if (this.#collected.length < LONGEST) this.#collected += char;
    else this.#state = "ground";
  }

  #csi(final: string, text: string): void {
    const prefix = /^[?>!=]/.exec(text)?.[0] ?? "";
    if (/[ -/]/.test(text) && final !== "p") return;
    const numbers = text.slice(prefix.length).split(";").flatMap(numbersOf);
    if (prefix === "?" && (final === "h" || final === "l")) {
      this.#private(numbers, final === "h");
      return;
    }
    if (prefix === "!" && final === "p") {
      this.screen.reset();
      return;
    }
    if (prefix !== "") return;
    if (final === "m") {
      this.screen.style = restyled(this.screen.style, numbers);
      return;
    }
    const [first = 0, second = 0] = numbers;
    ACTIONS[final]?.(this.screen, Math.min(first, LONGEST), Math.min(second, LONGEST));
    if (final === "n") this.#report(first);
    if (final === "c") this.#answer("\u001b[?62;22c");
  }

  #report(what: number): void {
    const { row, col, first } = this.screen;
    if (what === 5) this.#answer("\u001b[0n");
    if (what === 6) this.#answer(`\u001b[${row - first + 1};${col + 1}R`);
  }

  #private(numbers: readonly number[], on: boolean): void {
    const { screen } = this;
    const { modes } = screen;
    for (const mode of numbers) {
      if (mode === 1) modes.keypad = on;
      else if (mode === 6) {
        modes.origin = on;
        screen.move(0, 0);
      } else if (mode === 7) modes.wrap = on;
      else if (mode === 25) modes.cursor = on;
      else if (mode === 47 || mode === 1047 || mode === 1049) screen.alternate(on);
      else if (mode === 2004) modes.paste = on;
    }
  }
}

/**
 * One parameter with subparameters, as in `38:2::10:20:30` and `4:3`. A colour space is ignored; all underline styles
 * are one.
 */
function numbersOf(text: string): number[] {
  const [first = 0, ...parts] = text.split(":").map((part) => Number.parseInt(part, 10) || 0);
  if (first === 4 && parts.length > 0) return [parts[0] === 0 ? 24 : 4];
  return parts[0] === 2 && parts.length > 4 ? [first, 2, ...parts.slice(2, 5)] : [first, ...parts];
}

const some = (n: number): number => Math.max(1, n);

const ACTIONS: Record<string, (screen: Screen, first: number, second: number) => void> = {
  "@": (screen, n) => screen.shiftCells(-some(n)),
  A: (screen, n) => screen.step(-some(n), 0),
  B: (screen, n) => screen.step(some(n), 0),
  C: (screen, n) => screen.step(0, some(n)),
  D: (screen, n) => screen.step(0, -some(n)),
  E: (screen, n) => screen.step(some(n), -screen.cols),
  F: (screen, n) => screen.step(-some(n), -screen.cols),
  G: (screen, n) => screen.step(0, some(n) - 1 - screen.col),
  H: (screen, row, col) => screen.move(some(row) - 1, some(col) - 1),
  f: (screen, row, col) => screen.move(some(row) - 1, some(col) - 1),
  J: (screen, what) => eraseScreen(screen, what),
  K: (screen, what) => screen.erase(what === 0 ? screen.col : 0, what === 1 ? screen.col + 1 : screen.cols),
  L: (screen, n) => screen.shiftLines(-some(n)),
  M: (screen, n) => screen.shiftLines(some(n)),
  P: (screen, n) => screen.shiftCells(some(n)),
  S: (screen, n) => screen.scroll(some(n)),
  T: (screen, n) => screen.scroll(-some(n)),
  X: (screen, n) => screen.erase(screen.col, screen.col + some(n)),
  "`": (screen, n) => screen.step(0, some(n) - 1 - screen.col),
  d: (screen, n) => screen.move(some(n) - 1, screen.col),
  h: (screen, mode) => setMode(screen, mode, true),
  l: (screen, mode) => setMode(screen, mode, false),
  r: (screen, top, bottom) => screen.region(some(top) - 1, (bottom || screen.rows) - 1),
  s: (screen) => screen.save(),
  u: (screen) => screen.restore(),
};

function setMode({ modes }: Screen, mode: number, on: boolean): void {
  if (mode === 4) modes.insert = on;
}

function eraseScreen(screen: Screen, what: number): void {
  const { row, col, rows, cols } = screen;
  if (what === 0) {
    screen.erase(col, cols);
    screen.eraseLines(row + 1, rows);
  } else if (what === 1) {
    screen.eraseLines(0, row);
    screen.erase(0, col + 1);
  } else screen.eraseLines(0, rows);
}
