import { larger } from "./series-table.ts";

const NONE = 0xffff_ffff;

/**
 * Maps the bytes a sender uses for a series to the series' number, without parsing the labels. Senders repeat the same
 * series in the same order. So each entry remembers which one followed it last, and the usual case is one comparison
 * of bytes.
 *
 * The same bytes mean another series under other added labels, so `scope` is part of the key.
 */
export class KeyCache {
  readonly #most: number;
  #bytes = new Uint8Array(1 << 16);
  #view = new DataView(this.#bytes.buffer);
  #used = 0;
  #count = 0;
  // By entry.
  #start = new Uint32Array(1024);
  #length = new Uint32Array(1024);
  #scope = new Uint32Array(1024);
  #ref = new Uint32Array(1024);
  #next = new Uint32Array(1024);
  /** Open addressing, entry + 1. */
  #slots = new Uint32Array(4096);
  #generation = 0;

  constructor(most_bytes: number) {
    this.#most = most_bytes;
  }

  /** Forgets everything when the series numbers it learned may be dead. */
  sync(generation: number): void {
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#clear();
  }

  /** The entry expected after `before`, or -1. */
  expected(before: number): number {
    if (before < 0) return -1;
    const next = this.#next[before] ?? NONE;
    return next === NONE ? -1 : next;
  }

  length(entry: number): number {
    return this.#length[entry] as number;
  }

  ref(entry: number): number {
    return this.#ref[entry] as number;
  }

  /** Whether the bytes at `from` begin with the entry's key. */
  isAt(entry: number, scope: number, view: DataView, from: number): boolean {
    const length = this.#length[entry] as number;
    if (this.#scope[entry] !== scope || from + length > view.byteLength) return false;
    const start = this.#start[entry] as number;
    let i = 0;
    // Four bytes at a time, the last ones first: neighbours differ near their end.
    for (i = length - 4; i >= 0; i -= 4) {
      if (this.#view.getUint32(start + i) !== view.getUint32(from + i)) return false;
    }
    for (i += 3; i >= 0; i--) if (this.#bytes[start + i] !== view.getUint8(from + i)) return false;
    return true;
  }

  /** The entry of these bytes, or -1; either way remembered as what follows `before` once it is known. */
  find(scope: number, view: DataView, from: number, to: number, before: number): number {
    const mask = this.#slots.length - 1;
    let slot = hash(view, from, to, scope) & mask;
    for (;;) {
      const entry = (this.#slots[slot] as number) - 1;
      if (entry < 0) return -1;
      if (this.#length[entry] === to - from && this.isAt(entry, scope, view, from)) {
        if (before >= 0) this.#next[before] = entry;
        return entry;
      }
      slot = (slot + 1) & mask;
    }
  }

  add(scope: number, view: DataView, from: number, to: number, ref: number, before: number): number {
    const length = to - from;
    let previous = before;
    if (this.#used + length > this.#most) {
      this.#clear();
      previous = -1;
    }
    if (this.#count === this.#start.length) this.#growEntries();
    if (this.#used + length > this.#bytes.length) this.#growBytes(length);
    const entry = this.#count++;
    this.#bytes.set(new Uint8Array(view.buffer, view.byteOffset + from, length), this.#used);
    this.#start[entry] = this.#used;
    this.#length[entry] = length;
    this.#scope[entry] = scope;
    this.#ref[entry] = ref;
    this.#next[entry] = NONE;
    this.#used += length;
    if (previous >= 0) this.#next[previous] = entry;
    this.#place(entry);
    if (this.#count * 2 > this.#slots.length) this.#rehash();
    return entry;
  }

  #place(entry: number): void {
    const start = this.#start[entry] as number;
    const end = start + (this.#length[entry] as number);
    const mask = this.#slots.length - 1;
    let slot = hash(this.#view, start, end, this.#scope[entry] as number) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  #rehash(): void {
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let entry = 0; entry < this.#count; entry++) this.#place(entry);
  }

  #growEntries(): void {
    const size = this.#count * 2;
    this.#start = larger(this.#start, size);
    this.#length = larger(this.#length, size);
    this.#scope = larger(this.#scope, size);
    this.#ref = larger(this.#ref, size);
    this.#next = larger(this.#next, size);
  }

  #growBytes(more: number): void {
    const bytes = new Uint8Array(Math.min(this.#most, Math.max(this.#used + more, this.#bytes.length * 2)));
    bytes.set(this.#bytes);
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }

  #clear(): void {
    this.#used = 0;
    this.#count = 0;
    this.#slots.fill(0);
  }
}

function hash(view: DataView, from: number, to: number, scope: number): number {
  let value = 0x811c9dc5 ^ scope;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    value = Math.imul(value ^ view.getUint32(at), 0x01000193);
    value ^= value >>> 15;
  }
  for (; at < to; at++) value = Math.imul(value ^ view.getUint8(at), 0x01000193);
  return (value ^ (value >>> 13)) >>> 0;
}
