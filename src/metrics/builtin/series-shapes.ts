import { encodeLabels } from "../tsdb/index/labels.ts";
import type { BuiltinSample } from "./sources.ts";

/** Labels of a series' owner. Name and all other labels are shared by thousands of machines. */
export const OWNER_LABELS = ["app", "region", "host", "instance", "id"] as const;
export type Owner = readonly string[];

type Labels = BuiltinSample["labels"];

export const ownerOf = (labels: Labels): Owner => OWNER_LABELS.map((label) => labels[label] ?? "");
export const isOwner = (owner: Owner, labels: Labels): boolean =>
  owner.every((value, i) => value === (labels[OWNER_LABELS[i] ?? ""] ?? ""));

/** The owner's labels, encoded in the order of OWNER_LABELS; empty ones are omitted. */
export const spelledOwner = (owner: Owner): Uint8Array[] =>
  owner.map((value, i) => (value === "" ? new Uint8Array() : encodeLabels([OWNER_LABELS[i] ?? "", value])));

/** Part of an encoded series: shared bytes, or the index of an owner label. */
type Part = Uint8Array | number;

interface Shape {
  key: string;
  parts: readonly Part[];
}

/**
 * Interns what series have in common beside their owner, as numbers: a machine's hundred series cost a hundred numbers.
 */
export class SeriesShapes {
  #shapes: Shape[] = [];
  #numbers = new Map<string, number>();

  get size(): number {
    return this.#shapes.length;
  }

  numberOf({ name, labels }: BuiltinSample): number {
    const key = keyOf(name, labels);
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#shapes.push({ key, parts: partsOf(name, labels) }) - 1;
      this.#numbers.set(key, number);
    }
    return number;
  }

  /** The encoded series, in pieces. */
  *spell(number: number, owner: readonly Uint8Array[]): Generator<Uint8Array> {
    for (const part of this.#shapes[number]?.parts ?? []) {
      const bytes = typeof part === "number" ? owner[part] : part;
      if (bytes) yield bytes;
    }
  }

  /** Drops all shapes but these. Returns the new numbers. */
  keep(used: ReadonlySet<number>): ReadonlyMap<number, number> {
    const used_shapes = [...used].flatMap((number) => this.#shapes[number] ?? []);
    this.#shapes = used_shapes;
    this.#numbers = new Map(used_shapes.map(({ key }, number) => [key, number]));
    return new Map([...used].map((number, place) => [number, place]));
  }
}

const OWNER_PLACES: ReadonlyMap<string, number> = new Map(OWNER_LABELS.map((label, place) => [label, place]));

/** Labels of one series always have the same order, so joining them is a key. */
function keyOf(name: string, labels: Labels): string {
  let key = name;
  for (const label in labels) if (!OWNER_PLACES.has(label)) key += `\0${label}\0${labels[label]}`;
  return key;
}

function partsOf(name: string, labels: Labels): Part[] {
  const own = Object.entries(labels).filter(([label, value]) => value !== "" && !OWNER_PLACES.has(label));
  const all: [string, Part][] = [["__name__", name] as const, ...own].map(([label, value]) => [
    label,
    encodeLabels([label, value]),
  ]);
  for (const [label, place] of OWNER_PLACES) all.push([label, place]);
  return all.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, part]) => part);
}
