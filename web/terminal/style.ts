/** How a letter of a terminal looks. Styles are never changed, only replaced, so that equal neighbours are drawn as one. */

/** One of 256 colours by number, or RGB; absent means the default. */
export type Color = number | `rgb(${number},${number},${number})`;

export interface Style {
  fg?: Color;
  bg?: Color;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
  strike?: boolean;
}

export const PLAIN: Style = {};

const SET: Record<number, Style> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
};
const CLEAR: Record<number, readonly (keyof Style)[]> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["underline"],
  27: ["inverse"],
  29: ["strike"],
  39: ["fg"],
  49: ["bg"],
};

/** Applies SGR parameters to a style. */
export function restyled(style: Style, numbers: readonly number[]): Style {
  let now = style;
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 38 || code === 48) {
      const [color, used] = longColor(numbers.slice(at + 1));
      if (color !== undefined) now = { ...now, [code === 38 ? "fg" : "bg"]: color };
      at += used;
    } else now = one(now, code);
  }
  return now;
}

function one(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  const cleared = CLEAR[code];
  if (cleared)
    return Object.fromEntries(Object.entries(style).filter(([name]) => !cleared.includes(name as keyof Style)));
  const colors: [number, "fg" | "bg", number][] = [
    [30, "fg", 0],
    [40, "bg", 0],
    [90, "fg", 8],
    [100, "bg", 8],
  ];
  const found = colors.find(([first]) => code >= first && code < first + 8);
  if (found) return { ...style, [found[1]]: code - found[0] + found[2] };
  return { ...style, ...SET[code] };
}

/** Parses `5;n` or `2;r;g;b`, and returns how many parameters it used. */
function longColor([kind, a = 0, b = 0, c = 0]: readonly number[]): [Color | undefined, number] {
  if (kind === 5) return [a < 16 ? a : fixedColor(a), 2];
  if (kind === 2) return [`rgb(${a & 255},${b & 255},${c & 255})`, 4];
  return [undefined, 1];
}

/** Beyond the 16 theme colours: a 6 × 6 × 6 cube, then greys. */
function fixedColor(n: number): Color {
  if (n >= 232) return `rgb(${8 + (n - 232) * 10},${8 + (n - 232) * 10},${8 + (n - 232) * 10})`;
  const level = (step: number): number => (step === 0 ? 0 : 55 + step * 40);
  const at = n - 16;
  return `rgb(${level(Math.floor(at / 36))},${level(Math.floor(at / 6) % 6)},${level(at % 6)})`;
}
