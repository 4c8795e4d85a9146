/** Reads and writes the few XML elements that S3 sends: no attributes, no nesting of an element in itself. */

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The content of every `<name>`: markup for an element with children, text for `textOf`. */
export function elements(xml: string, name: string): string[] {
  return Array.from(
    xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([^]*?)</${name}>`, "g")),
    ([, content = ""]) => content,
  );
}

/** The text of the first `<name>`, or undefined. */
export function textOf(xml: string, name: string): string | undefined {
  return elements(xml, name)[0]?.replaceAll(/&(#\d+|#x[\da-f]+|\w+);/gi, (_, reference: string) =>
    character(reference),
  );
}

function character(reference: string): string {
  if (!reference.startsWith("#")) return ENTITIES[reference] ?? `&${reference};`;
  const hex = /^#x/i.test(reference);
  return String.fromCodePoint(Number.parseInt(reference.slice(hex ? 2 : 1), hex ? 16 : 10));
}

export const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
