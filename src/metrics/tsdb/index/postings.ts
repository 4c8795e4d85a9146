/** Lists of series numbers, always rising: series are numbered in the order they are first seen. */
export class Postings {
  #refs: Uint32Array;
  length: number;

  constructor(first: number, second: number) {
    this.#refs = Uint32Array.of(first, second, 0, 0);
    this.length = 2;
  }

  add(ref: number): void {
    if (this.length === this.#refs.length) {
      const larger = new Uint32Array(this.length * 2);
      larger.set(this.#refs);
      this.#refs = larger;
    }
    this.#refs[this.length++] = ref;
  }

  some(passes: (ref: number) => boolean): boolean {
    for (let i = 0; i < this.length; i++) if (passes(this.#refs[i] as number)) return true;
    return false;
  }

  view(): Uint32Array {
    return this.#refs.subarray(0, this.length);
  }
}

/** A set of series numbers below `size`, for unions of many lists. */
export class RefSet {
  #words: Uint32Array;

  /** Room for so many from the beginning; it grows. */
  constructor(size: number) {
    this.#words = new Uint32Array((size + 31) >>> 5);
  }

  add(ref: number): void {
    if (ref >>> 5 >= this.#words.length) {
      const words = new Uint32Array(Math.max(2 * this.#words.length, (ref >>> 5) + 1));
      words.set(this.#words);
      this.#words = words;
    }
    this.#words[ref >>> 5] = (this.#words[ref >>> 5] ?? 0) | (1 << (ref & 31));
  }

  addAll(refs: Uint32Array): void {
    for (let i = 0; i < refs.length; i++) this.add(refs[i] as number);
  }

  has(ref: number): boolean {
    return ((this.#words[ref >>> 5] ?? 0) & (1 << (ref & 31))) !== 0;
  }

  get size(): number {
    let count = 0;
    for (let word of this.#words) for (; word !== 0; word &= word - 1) count++;
    return count;
  }

  /** Its members, rising. */
  list(): Uint32Array {
    const refs = new Uint32Array(this.size);
    let at = 0;
    this.#words.forEach((bits, index) => {
      for (let word = bits; word !== 0; word &= word - 1) refs[at++] = index * 32 + 31 - Math.clz32(word & -word);
    });
    return refs;
  }
}

export function intersect(a: Uint32Array, b: Uint32Array): Uint32Array {
  const [few, many] = a.length <= b.length ? [a, b] : [b, a];
  const both = new Uint32Array(few.length);
  let count = 0;
  let from = 0;
  for (let i = 0; i < few.length && from < many.length; i++) {
    const ref = few[i] as number;
    from = lowerBound(many, ref, from);
    if (many[from] === ref) both[count++] = ref;
  }
  return both.subarray(0, count);
}

/** The first place at or after `from` whose number is not below `ref`; steps double until they pass it. */
export function lowerBound(refs: Uint32Array, ref: number, from = 0): number {
  let step = 1;
  let low = from;
  while (low + step < refs.length && (refs[low + step] as number) < ref) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, refs.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((refs[middle] as number) < ref) low = middle + 1;
    else high = middle;
  }
  return low;
}
