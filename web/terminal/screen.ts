/** What a terminal shows: letters in rows, a place to write, and the lines that have left at the top. */
import { PLAIN, type Style } from "./style.ts";

export interface Cell {
  /** Empty after a double-width character. */
  char: string;
  style: Style;
}

export interface Row {
  cells: Cell[];
  /** Redrawn when this has changed. */
  changes: number;
}

/** Lines of scrollback. */
export const HISTORY = 2000;

const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6])/u;
const JOINS = /^(?:\p{M}|\u200d|\ufe0f)/u;

interface Place {
  row: number;
  col: number;
  style: Style;
}

const blank = (style: Style): Cell => ({ char: " ", style });

export class Screen {
  rows: number;
  cols: number;
  lines: Row[];
  readonly history: Row[] = [];
  /** Total number of scrolled-off lines, for incremental drawing. */
  left = 0;
  row = 0;
  col = 0;
  style: Style = PLAIN;
  modes = { wrap: true, insert: false, origin: false, cursor: true, keypad: false, paste: false };
  #top = 0;
  #bottom: number;
  /** The last column is filled; the next character wraps. */
  #full = false;
  #saved: Place = { row: 0, col: 0, style: PLAIN };
  #main: Row[] | undefined;

  constructor(rows: number, cols: number) {
    this.rows = rows;
    this.cols = cols;
    this.#bottom = rows - 1;
    this.lines = Array.from({ length: rows }, () => this.#emptyRow());
  }

  /** The screen as text, for screen readers and tests. */
  text(): string {
    return this.lines
      .map(({ cells }) =>
        cells
          .map(({ char }) => char)
          .join("")
          .trimEnd(),
      )
      .join("\n");
  }

  write(char: string): void {
    if (JOINS.test(char)) {
      this.#join(char);
      return;
    }
    const width = WIDE.test(char) ? 2 : 1;
    if (this.modes.wrap && (this.#full || this.col + width > this.cols)) {
      this.col = 0;
      this.feed();
    }
    const { cells } = this.#touched();
    const put = [{ char, style: this.style }, ...(width === 2 ? [{ char: "", style: this.style }] : [])];
    cells.splice(this.col, this.modes.insert ? 0 : width, ...put);
    cells.length = Math.min(cells.length, this.cols);
    while (cells.length < this.cols) cells.push(blank(PLAIN));
    this.col += width;
    this.#full = this.col >= this.cols;
    if (this.#full) this.col = this.cols - 1;
  }

  /** Line feed; scrolls at the end of the region. */
  feed(): void {
    this.#full = false;
    if (this.row === this.#bottom) this.scroll(1);
    else if (this.row < this.rows - 1) this.row++;
  }

  reverseFeed(): void {
    this.#full = false;
    if (this.row === this.#top) this.scroll(-1);
    else if (this.row > 0) this.row--;
  }

  /** Scrolls the region; lines that leave the top of the screen go to the scrollback. */
  scroll(by: number, from = this.#top): void {
    const count = Math.min(Math.abs(by), this.#bottom - from + 1);
    const fresh = Array.from({ length: count }, () => this.#emptyRow());
    if (by > 0) {
      const removed = this.lines.splice(from, count);
      this.lines.splice(this.#bottom - count + 1, 0, ...fresh);
      if (from === 0 && !this.#main) this.#keep(removed);
    } else {
      this.lines.splice(this.#bottom - count + 1, count);
      this.lines.splice(from, 0, ...fresh);
    }
  }

  /** Inserts or deletes lines at the cursor. */
  shiftLines(by: number): void {
    if (this.row >= this.#top && this.row <= this.#bottom) this.scroll(by, this.row);
  }

  /** Inserts (negative) or deletes characters at the cursor. */
  shiftCells(by: number): void {
    const { cells } = this.#touched();
    const count = Math.min(Math.abs(by), this.cols - this.col);
    const fresh = Array.from({ length: count }, () => blank(this.#ground()));
    if (by > 0) {
      cells.splice(this.col, count);
      cells.push(...fresh);
    } else {
      cells.splice(this.col, 0, ...fresh);
      cells.length = this.cols;
    }
  }

  /** Erases cells of a line. */
  erase(from: number, to: number, row = this.row): void {
    const line = this.#touched(row);
    for (let at = Math.max(0, from); at < Math.min(to, this.cols); at++) line.cells[at] = blank(this.#ground());
    this.#full = false;
  }

  eraseLines(from: number, to: number): void {
    for (let row = from; row < to; row++) this.erase(0, this.cols, row);
  }

  /** The origin row: the region's first, in origin mode. */
  get first(): number {
    return this.modes.origin ? this.#top : 0;
  }

  move(row: number, col: number): void {
    this.#place(row + this.first, col);
  }

  /** Moves the cursor within the region. */
  step(rows: number, cols: number): void {
    const inside = this.row >= this.#top && this.row <= this.#bottom;
    const [low, high] = inside ? [this.#top, this.#bottom] : [0, this.rows - 1];
    this.#place(Math.max(low, Math.min(high, this.row + rows)), this.col + cols);
  }

  region(top: number, bottom: number): void {
    const end = Math.min(bottom, this.rows - 1);
    if (top >= end) return;
    this.#top = top;
    this.#bottom = end;
    this.move(0, 0);
  }

  save(): void {
    this.#saved = { row: this.row, col: this.col, style: this.style };
  }

  restore(): void {
    this.#place(this.#saved.row, this.#saved.col);
    this.style = this.#saved.style;
  }

  /** Switches to the alternate screen, or back. */
  alternate(on: boolean): void {
    if (on === (this.#main !== undefined)) return;
    if (on) {
      this.save();
      this.#main = this.lines;
      this.lines = Array.from({ length: this.rows }, () => this.#emptyRow());
    } else {
      this.lines = this.#main ?? this.lines;
      this.#main = undefined;
      this.#fit();
      this.restore();
    }
    this.region(0, this.rows - 1);
    if (!on) this.restore();
  }

  reset(): void {
    this.alternate(false);
    this.style = PLAIN;
    this.modes = { wrap: true, insert: false, origin: false, cursor: true, keypad: false, paste: false };
    this.region(0, this.rows - 1);
    this.eraseLines(0, this.rows);
  }

  resize(rows: number, cols: number): void {
    // Lines that no longer fit scroll off the top, so that the input line stays.
    const removed = Math.max(0, this.row - rows + 1);
    if (removed > 0) {
      const lines = this.lines.splice(0, removed);
      if (!this.#main) this.#keep(lines);
    }
    this.rows = rows;
    this.cols = cols;
    this.#fit();
    this.#top = 0;
    this.#bottom = rows - 1;
    this.#place(this.row - removed, this.col);
  }

  #fit(): void {
    this.lines.length = Math.min(this.lines.length, this.rows);
    while (this.lines.length < this.rows) this.lines.push(this.#emptyRow());
    for (const line of this.lines) {
      line.cells.length = Math.min(line.cells.length, this.cols);
      while (line.cells.length < this.cols) line.cells.push(blank(PLAIN));
      line.changes++;
    }
  }

  #keep(lines: Row[]): void {
    this.history.push(...lines);
    this.left += lines.length;
    if (this.history.length > HISTORY) this.history.splice(0, this.history.length - HISTORY);
  }

  #join(char: string): void {
    const cell = this.#touched().cells[Math.max(0, this.#full ? this.col : this.col - 1)];
    if (cell) cell.char += char;
  }

  #place(row: number, col: number): void {
    this.row = Math.max(0, Math.min(this.rows - 1, row));
    this.col = Math.max(0, Math.min(this.cols - 1, col));
    this.#full = false;
  }

  #touched(row = this.row): Row {
    const line = this.lines[row] ?? this.#emptyRow();
    line.changes++;
    return line;
  }

  /** Erased cells keep the background colour. */
  #ground(): Style {
    return this.style.bg === undefined ? PLAIN : { bg: this.style.bg };
  }

  #emptyRow(): Row {
    return { cells: Array.from({ length: this.cols }, () => blank(this.#ground())), changes: 0 };
  }
}
