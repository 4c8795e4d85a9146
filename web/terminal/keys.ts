/** What a terminal sends for a key. Undefined: the key is the browser's, or comes as text. */
interface Pressed {
  key: string;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
}

const ESC = "\u001b";
const PLAIN: Record<string, string> = { Enter: "\r", Backspace: "\u007f", Tab: "\t", Escape: ESC };
const ARROWS: Record<string, string> = {
  ArrowUp: "A",
  ArrowDown: "B",
  ArrowRight: "C",
  ArrowLeft: "D",
  Home: "H",
  End: "F",
};
const NUMBERED: Record<string, number> = {
  Insert: 2,
  Delete: 3,
  PageUp: 5,
  PageDown: 6,
  F5: 15,
  F6: 17,
  F7: 18,
  F8: 19,
  F9: 20,
  F10: 21,
  F11: 23,
  F12: 24,
};
const FUNCTION: Record<string, string> = { F1: "P", F2: "Q", F3: "R", F4: "S" };

export function bytesOf(pressed: Pressed, keypad: boolean): string | undefined {
  const { key, ctrlKey, metaKey, shiftKey } = pressed;
  // Browser shortcuts, and the way out of the terminal by keyboard.
  if (metaKey || (shiftKey && (ctrlKey || key === "Tab"))) return undefined;
  return special(pressed, keypad) ?? letter(pressed);
}

function special({ key, shiftKey, altKey, ctrlKey }: Pressed, keypad: boolean): string | undefined {
  const modifiers = 1 + Number(shiftKey) + 2 * Number(altKey) + 4 * Number(ctrlKey);
  const [arrow, number, named] = [ARROWS[key], NUMBERED[key], FUNCTION[key]];
  if (arrow) return modifiers > 1 ? `${ESC}[1;${modifiers}${arrow}` : `${ESC}${keypad ? "O" : "["}${arrow}`;
  if (number) return `${ESC}[${number}${modifiers > 1 ? `;${modifiers}` : ""}~`;
  return named ? `${ESC}O${named}` : undefined;
}

function letter({ key, altKey, ctrlKey }: Pressed): string | undefined {
  const single = altKey && key.length === 1 ? key : undefined;
  const bytes = PLAIN[key] ?? (ctrlKey ? controlOf(key) : single);
  return bytes === undefined ? undefined : `${altKey ? ESC : ""}${bytes}`;
}

function controlOf(key: string): string | undefined {
  if (key === " ") return "\0";
  return /^[a-zA-Z[\\\]^_]$/.test(key) ? String.fromCharCode(key.toUpperCase().charCodeAt(0) & 31) : undefined;
}

/** A paste, bracketed if the program asked for it. */
export function pasted(text: string, marked: boolean): string {
  const lines = text.replaceAll(/\r?\n/g, "\r");
  return marked ? `${ESC}[200~${lines.replaceAll(`${ESC}[201~`, "")}${ESC}[201~` : lines;
}
