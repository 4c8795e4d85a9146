import { assert } from "#core/assert.ts";
import type { Labels } from "../../source.ts";
import { Postings, RefSet } from "./postings.ts";

/** One label name and the pairs it occurs in. */
export interface LabelName {
  readonly name: string;
  /** Value → pair number. */
  readonly pairs: Map<string, number>;
}

const EMPTY = new Uint32Array(0);
const SEED = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * Every series of an org: its number, its labels, and the index from label to series. All in memory and flat:
 * a series is a run of 32-bit pair numbers, a pair is one `name="value"` with its postings. What blocks and
 * log say about series is put in here when they are opened.
 */
export class SeriesTable {
  readonly names = new Map<string, LabelName>();
  /** By pair number. A pair of one series keeps just its number: most high-cardinality values are such. */
  readonly #postings: (number | Postings | undefined)[] = [];
  readonly #pairName: LabelName[] = [];
  readonly #pairValue: string[] = [];

  /** Pair numbers of all series, back to back; `#starts[ref]` is where a series begins. */
  #pairs = new Uint32Array(1024);
  #starts = new Uint32Array(257);
  #dead = new RefSet(0);
  #deadCount = 0;
  /** Numbers given so far, dead ones included: they are never given again while open. */
  count = 0;
  /** Rises whenever series are forgotten: numbers remembered elsewhere may then be dead. */
  generation = 0;

  /** Open addressing, series number + 1. */
  #slots = new Uint32Array(512);
  /** The pair numbers of the labels at hand, kept to be used again: a start asks this of every series several times. */
  #sought = new Uint32Array(64);
  readonly #labels = new Map<number, Labels>();
  readonly #labelsKept: number;

  constructor(labels_kept: number) {
    this.#labelsKept = labels_kept;
  }

  get alive(): number {
    return this.count - this.#deadCount;
  }

  find(labels: Labels): number | undefined {
    if (!this.#knownPairs(labels)) return undefined;
    const ref = this.#slots[this.#slotOf(labels.length / 2)] as number;
    return ref === 0 ? undefined : ref - 1;
  }

  /** The number of the series with these labels, which are sorted by name; a new one when it was not known. */
  add(labels: Labels): number {
    const count = labels.length / 2;
    this.#makeRoom(count);
    for (let i = 0; i < count; i++) this.#sought[i] = this.#pair(labels[2 * i] ?? "", labels[2 * i + 1] ?? "");
    const slot = this.#slotOf(count);
    const known = this.#slots[slot] as number;
    if (known !== 0) return known - 1;
    const ref = this.count++;
    this.#slots[slot] = ref + 1;
    this.#store(ref, count);
    for (let i = 0; i < count; i++) this.#post(this.#sought[i] as number, ref);
    if (this.count * 2 > this.#slots.length) this.#rehash(this.#slots.length * 2);
    return ref;
  }

  labels(ref: number): Labels {
    const known = this.#labels.get(ref);
    if (known) return known;
    const labels = this.spell(ref);
    if (this.#labels.size >= this.#labelsKept) this.#labels.clear();
    this.#labels.set(ref, labels);
    return labels;
  }

  /** As `labels`, without caching: for writers, which read every series once. */
  spell(ref: number): Labels {
    const labels: string[] = [];
    for (const pair of this.pairs(ref)) labels.push(this.#pairName[pair]?.name ?? "", this.#pairValue[pair] ?? "");
    return labels;
  }

  /** Pair numbers of a series, in the order of its labels. */
  pairs(ref: number): Uint32Array {
    return this.#pairs.subarray(this.#starts[ref], this.#starts[ref + 1]);
  }

  pairText(pair: number): { name: string; value: string } {
    return { name: this.#pairName[pair]?.name ?? "", value: this.#pairValue[pair] ?? "" };
  }

  get pairCount(): number {
    return this.#pairValue.length;
  }

  value(ref: number, name: string): string {
    for (const pair of this.pairs(ref)) if (this.#pairName[pair]?.name === name) return this.#pairValue[pair] ?? "";
    return "";
  }

  postings(pair: number): Uint32Array {
    const list = this.#postings[pair];
    if (list === undefined) return EMPTY;
    return typeof list === "number" ? Uint32Array.of(list) : list.view();
  }

  /** Whether a series with this pair passes. One is enough, and mostly the first will do. */
  someOf(pair: number, passes: (ref: number) => boolean): boolean {
    const list = this.#postings[pair];
    if (list === undefined) return false;
    return typeof list === "number" ? passes(list) : list.some(passes);
  }

  /** Every living series, rising. */
  all(): Uint32Array {
    const refs = new Uint32Array(this.alive);
    let at = 0;
    for (let ref = 0; ref < this.count; ref++) if (!this.#dead.has(ref)) refs[at++] = ref;
    return refs;
  }

  /** Series by their labels, as the files keep them: neighbours have the same name, then the same app. */
  compare(a: number, b: number): number {
    const one = this.pairs(a);
    const two = this.pairs(b);
    const shorter = Math.min(one.length, two.length);
    for (let i = 0; i < shorter; i++) {
      const p = one[i] as number;
      const q = two[i] as number;
      if (p === q) continue;
      const left = this.pairText(p);
      const right = this.pairText(q);
      if (left.name !== right.name) return left.name < right.name ? -1 : 1;
      return left.value < right.value ? -1 : 1;
    }
    return one.length - two.length;
  }

  /** Forgets series that are in no block and not in the head. Their numbers stay taken. */
  remove(keep: RefSet): void {
    const dead = new RefSet(this.count);
    this.#deadCount = 0;
    for (let ref = 0; ref < this.count; ref++) {
      if (keep.has(ref)) continue;
      dead.add(ref);
      this.#deadCount++;
    }
    this.#dead = dead;
    this.generation++;
    this.#labels.clear();
    this.#rehash(this.#slots.length);
    for (let pair = 0; pair < this.#postings.length; pair++) this.#thin(pair);
  }

  #thin(pair: number): void {
    const before = this.postings(pair);
    const after = before.filter((ref) => !this.#dead.has(ref));
    if (after.length === before.length) return;
    this.#postings[pair] = undefined;
    for (const ref of after) this.#post(pair, ref);
    if (after.length > 0) return;
    const name = this.#pairName[pair];
    name?.pairs.delete(this.#pairValue[pair] ?? "");
    if (name?.pairs.size === 0) this.names.delete(name.name);
  }

  #pair(name: string, value: string): number {
    let label = this.names.get(name);
    if (!label) {
      label = { name, pairs: new Map() };
      this.names.set(name, label);
    }
    const known = label.pairs.get(value);
    if (known !== undefined) return known;
    const pair = this.#pairValue.push(value) - 1;
    this.#pairName.push(label);
    this.#postings.push(undefined);
    label.pairs.set(value, pair);
    return pair;
  }

  /** Looks the pairs up into `#sought`; false when there is one that no series has. */
  #knownPairs(labels: Labels): boolean {
    const count = labels.length / 2;
    this.#makeRoom(count);
    for (let i = 0; i < count; i++) {
      const pair = this.names.get(labels[2 * i] ?? "")?.pairs.get(labels[2 * i + 1] ?? "");
      if (pair === undefined) return false;
      this.#sought[i] = pair;
    }
    return true;
  }

  #makeRoom(count: number): void {
    if (count > this.#sought.length) this.#sought = new Uint32Array(count);
  }

  #post(pair: number, ref: number): void {
    const list = this.#postings[pair];
    if (list === undefined) this.#postings[pair] = ref;
    else if (typeof list === "number") this.#postings[pair] = new Postings(list, ref);
    else list.add(ref);
  }

  #store(ref: number, count: number): void {
    const start = this.#starts[ref] as number;
    const end = start + count;
    assert(end < 2 ** 32, "the series table is within 32 bits");
    if (end > this.#pairs.length) this.#pairs = larger(this.#pairs, end);
    if (ref + 2 > this.#starts.length) this.#starts = larger(this.#starts, ref + 2);
    for (let i = 0; i < count; i++) this.#pairs[start + i] = this.#sought[i] as number;
    this.#starts[ref + 1] = end;
  }

  /** The slot that holds the series of the first `count` pairs of `#sought`, or the empty one where it belongs. */
  #slotOf(count: number): number {
    const mask = this.#slots.length - 1;
    let slot = hash(this.#sought, 0, count) & mask;
    for (;;) {
      const ref = this.#slots[slot] as number;
      if (ref === 0 || this.#isSought(ref - 1, count)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isSought(ref: number, count: number): boolean {
    const start = this.#starts[ref] as number;
    if ((this.#starts[ref + 1] as number) - start !== count) return false;
    for (let i = 0; i < count; i++) if (this.#pairs[start + i] !== this.#sought[i]) return false;
    return true;
  }

  #rehash(size: number): void {
    const slots = new Uint32Array(size);
    const mask = size - 1;
    for (let ref = 0; ref < this.count; ref++) {
      if (this.#dead.has(ref)) continue;
      // No two series are alike, so the first empty slot is its own.
      let slot = hash(this.#pairs, this.#starts[ref] as number, this.#starts[ref + 1] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = ref + 1;
    }
    this.#slots = slots;
  }
}

function hash(pairs: Uint32Array, start: number, end: number): number {
  let value = SEED;
  for (let i = start; i < end; i++) {
    value = Math.imul(value ^ (pairs[i] as number), PRIME);
    value ^= value >>> 15;
  }
  return value >>> 0;
}

/** A copy with at least `needed` places, doubling so that growth stays cheap. */
export function larger(column: Uint32Array, needed: number): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(Math.max(needed, column.length * 2));
  copy.set(column);
  return copy;
}
