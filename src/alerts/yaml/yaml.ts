/** Reads a YAML document and reports problems with the line they are on. */
import type { Document, LineCounter } from "yaml";
import { closest } from "#core/words.ts";
import { ALERT_LIMITS } from "../limits.ts";

export type Fields = readonly string[];
export type Path = readonly (string | number)[];

const MOST_PROBLEMS = 50;

export const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export async function readYaml(text: string): Promise<YamlDocument> {
  // Loaded on first use: most platforms and commands read no rules.
  const { parseDocument, LineCounter: Lines } = await import("yaml");
  const lines = new Lines();
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false, stringKeys: true });
  return new YamlDocument(document, lines);
}

export class YamlDocument {
  readonly root: unknown;
  readonly problems: string[] = [];
  readonly #document: Document;
  readonly #lines: LineCounter;

  constructor(document: Document, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
    for (const { message, pos } of document.errors) this.#add(pos[0], message);
    if (this.problems.length > 0) return;
    try {
      this.root = document.toJS({ maxAliasCount: ALERT_LIMITS.yaml_aliases });
    } catch (thrown) {
      this.#add(0, thrown instanceof Error ? thrown.message : String(thrown));
    }
  }

  problem(path: Path, text: string): void {
    this.#add(this.#offset(path), text);
  }

  /** A table that has no other fields. */
  table(value: unknown, path: Path, fields: Fields): Record<string, unknown> {
    if (!isTable(value)) {
      this.problem(path, `${nameOf(path)} must be a table`);
      return {};
    }
    for (const key of Object.keys(value)) {
      if (fields.includes(key)) continue;
      const near = closest(key, fields);
      this.problem([...path, key], `field ${key} is not known here${near ? `; did you mean ${near}?` : ""}`);
    }
    return value;
  }

  list(value: unknown, path: Path): unknown[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    this.problem(path, `${nameOf(path)} must be a list`);
    return [];
  }

  /** A text; numbers and the like as they are written. */
  scalar(value: unknown, path: Path): string {
    if (typeof value === "string") return value;
    if (value === null || value === undefined) return "";
    if (typeof value === "object") {
      this.problem(path, `${nameOf(path)} must be text`);
      return "";
    }
    const node = this.#document.getIn(path, true) as { source?: string } | undefined;
    return node?.source ?? String(value as number | boolean);
  }

  #add(offset: number, text: string): void {
    if (this.problems.length >= MOST_PROBLEMS) return;
    this.problems.push(`line ${this.#lines.linePos(offset).line}: ${text}`);
  }

  /** The offset of the value, or of the nearest node around it. */
  #offset(path: Path): number {
    for (let length = path.length; length > 0; length--) {
      const node = this.#document.getIn(path.slice(0, length), true) as
        | { range?: [number, number, number] }
        | undefined;
      if (node?.range) return node.range[0];
    }
    return this.#document.contents?.range?.[0] ?? 0;
  }
}

const nameOf = (path: Path): string => (path.length === 0 ? "the document" : String(path.at(-1)));
