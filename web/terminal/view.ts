/** Draws a screen into an element: once a frame at most, and only the lines that have changed. */
import type { Emulator } from "./emulator.ts";
import { type Cell, HISTORY, type Row } from "./screen.ts";
import type { Color, Style } from "./style.ts";

const FLAGS = ["bold", "dim", "italic", "underline", "strike"] as const;

export class View {
  readonly #host: HTMLElement;
  readonly #emulator: Emulator;
  readonly #past: HTMLElement;
  readonly #live: HTMLElement;
  readonly #drawn = new WeakMap<Element, { row: Row; changes: number; cursor: number }>();
  #frame = 0;
  #left = 0;

  constructor(host: HTMLElement, emulator: Emulator) {
    this.#host = host;
    this.#emulator = emulator;
    this.#past = host.appendChild(document.createElement("div"));
    this.#live = host.appendChild(document.createElement("div"));
    this.soon();
  }

  soon(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#host.replaceChildren();
  }

  #draw(): void {
    const { screen } = this.#emulator;
    const follows = this.#host.scrollHeight - this.#host.scrollTop - this.#host.clientHeight < 40;
    const fresh = Math.min(screen.left - this.#left, screen.history.length);
    this.#left = screen.left;
    if (fresh > 0) for (const row of screen.history.slice(-fresh)) this.#past.append(lineOf(row.cells, -1));
    while (this.#past.childElementCount > HISTORY) this.#past.firstElementChild?.remove();
    for (const [at, row] of screen.lines.entries()) {
      this.#drawLine(at, row, screen.modes.cursor && at === screen.row ? screen.col : -1);
    }
    while (this.#live.childElementCount > screen.rows) this.#live.lastElementChild?.remove();
    if (follows) this.#host.scrollTop = this.#host.scrollHeight;
  }

  #drawLine(at: number, row: Row, cursor: number): void {
    const old = this.#live.children[at];
    const was = old && this.#drawn.get(old);
    if (was?.row === row && was.changes === row.changes && was.cursor === cursor) return;
    const line = lineOf(row.cells, cursor);
    this.#drawn.set(line, { row, changes: row.changes, cursor });
    if (old) old.replaceWith(line);
    else this.#live.append(line);
  }
}

/** Neighbours that look the same are one piece. Nothing at the end is left out, so that nobody copies it. */
function lineOf(cells: readonly Cell[], cursor: number): HTMLElement {
  const line = document.createElement("div");
  let text = "";
  let style: Style | undefined;
  const flush = (): void => {
    if (text !== "" && style) line.append(pieceOf(text, style));
    text = "";
  };
  const end = cells.findLastIndex(({ char, style: its }) => char.trim() !== "" || its.bg !== undefined || its.inverse);
  for (const [at, cell] of cells.slice(0, Math.max(end, cursor) + 1).entries()) {
    if (at === cursor) {
      flush();
      const piece = pieceOf(cell.char || " ", cell.style);
      piece.classList.add("cursor");
      line.append(piece);
      continue;
    }
    if (cell.style !== style) flush();
    style = cell.style;
    text += cell.char;
  }
  flush();
  return line;
}

function pieceOf(text: string, style: Style): HTMLElement {
  const piece = document.createElement("span");
  piece.textContent = text;
  for (const flag of FLAGS) if (style[flag]) piece.classList.add(`t-${flag}`);
  const { fg, bg, inverse } = style;
  paint(piece, "fg", inverse ? (bg ?? "ground") : fg);
  paint(piece, "bg", inverse ? (fg ?? "ink") : bg);
  return piece;
}

/** The sixteen are the theme's, by class; the rest are what they are. */
function paint(piece: HTMLElement, what: "fg" | "bg", color: Color | "ground" | "ink" | undefined): void {
  if (color === undefined) return;
  if (typeof color === "string" && color.startsWith("rgb")) {
    piece.style.setProperty(what === "fg" ? "color" : "background-color", color);
  } else piece.classList.add(`t-${what}-${color}`);
}
