/**
 * Turns the bytes of label texts into strings. The same names and values come again with every series, and looking at
 * a string that is there already costs a quarter of making it anew.
 */
const SLOTS = 4096;
/** Longer texts are rarely repeated. */
const LONGEST = 64;
const SEED = 0x811c9dc5;
const PRIME = 0x01000193;

/** ASCII only: there a byte is a character, so text and bytes can be compared as they are. */
const known: (string | undefined)[] = Array.from({ length: SLOTS });

/** The UTF-8 text of `bytes` from `start` up to `end`. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > LONGEST) return decoded(bytes, start, end);
  let hash = SEED;
  let all = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    hash = Math.imul(hash ^ byte, PRIME);
    all |= byte;
  }
  if (all > 127) return decoded(bytes, start, end);
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const text = known[slot];
  if (text !== undefined && isText(text, bytes, start, end)) return text;
  const made = decoded(bytes, start, end);
  known[slot] = made;
  return made;
}

function isText(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

function decoded({ buffer, byteOffset }: Uint8Array, start: number, end: number): string {
  return Buffer.from(buffer, byteOffset + start, end - start).toString("utf8");
}
