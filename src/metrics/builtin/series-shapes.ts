import { encodeLabels } from "../tsdb/index/labels.ts";
import type { BuiltinSample } from "./sources.ts";

/** Labels that say whose a series is. All others, with the name, are what thousands of machines have in common. */
export const OWNER_LABELS = ["app", "region", "host", "instance", "id"] as const;
export type Owner = readonly string[];

type Labels = BuiltinSample["labels"];

export const ownerOf = (labels: Labels): Owner => OWNER_LABELS.map((label) => labels[label] ?? "");
export const isOwner = (owner: Owner, labels: Labels): boolean =>
  owner.every((value, i) => value === (labels[OWNER_LABELS[i] ?? ""] ?? ""));

/** The labels of an owner as a batch spells them, in the order of OWNER_LABELS; a label without a value is no label. */
export const spelledOwner = (owner: Owner): Uint8Array[] =>
  owner.map((value, i) => (value === "" ? new Uint8Array() : encodeLabels([OWNER_LABELS[i] ?? "", value])));

/** A part of a spelled series: bytes that all owners share, or the place of a label of the owner. */
type Part = Uint8Array | number;

interface Shape {
  key: string;
  parts: readonly Part[];
}

/**
 * What series have in common beside their owner, each kept once and known by a number: a machine has a hundred series,
 * and as many numbers are all that is kept of them.
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

  /** The bytes of a series, in pieces. */
  *spell(number: number, owner: readonly Uint8Array[]): Generator<Uint8Array> {
    for (const part of this.#shapes[number]?.parts ?? []) {
      const bytes = typeof part === "number" ? owner[part] : part;
      if (bytes) yield bytes;
    }
  }

  /** Forgets all shapes but these. Answers the new number of each. */
  keep(used: ReadonlySet<number>): ReadonlyMap<number, number> {
    const kept = [...used].flatMap((number) => this.#shapes[number] ?? []);
    this.#shapes = kept;
    this.#numbers = new Map(kept.map(({ key }, number) => [key, number]));
    return new Map([...used].map((number, place) => [number, place]));
  }
}

const OWNER_PLACES: ReadonlyMap<string, number> = new Map(OWNER_LABELS.map((label, place) => [label, place]));

/** Labels of one series always come in the same order, so joining them is enough to tell shapes apart. */
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
