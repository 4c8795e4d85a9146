import { Crc64, joined, type Summed } from "./crc64.ts";

/** A page of a database: its number, counted from 1, and its content, which is part of two checksums. */
export interface Page extends Summed {
  readonly number: number;
  readonly data: Buffer;
}

/** SQLite never uses the page that holds its lock bytes; it is in no LTX file and in no checksum. */
const LOCK_BYTE = 0x40000000;

export function lockPage(page_size: number): number {
  return Math.floor(LOCK_BYTE / page_size) + 1;
}

/** Pages that are compared together when a snapshot goes on where it broke off. */
export const BLOCK_PAGES = 1024;

/** What a transaction does to the checksums; nothing is changed until `accept`. */
export interface TableChange {
  readonly pages: readonly Page[];
  readonly sums: Uint32Array;
  readonly commit: number;
  readonly high: number;
  readonly low: number;
  readonly checksum: bigint;
}

const crc = new Crc64();

function sumOf(page: Page): [high: number, low: number] {
  crc.reset();
  crc.uint32(page.number);
  crc.absorb(page);
  return [crc.high | 0x80000000, crc.low];
}

/** The checksum of one page. */
export function pageSum(page: Page): bigint {
  const [high, low] = sumOf(page);
  return joined(high, low);
}

/**
 * The checksum of every page, and of the database: the exclusive or of all of them. So the checksum after a
 * transaction costs only the pages it wrote. Eight bytes per page in memory.
 */
export class PageTable {
  readonly page_size: number;
  readonly #lock_page: number;
  #sums: Uint32Array;
  #count: number;
  #high = 0;
  #low = 0;

  constructor(page_size: number, sums: Uint32Array = new Uint32Array(0)) {
    this.page_size = page_size;
    this.#lock_page = lockPage(page_size);
    this.#sums = sums;
    this.#count = sums.length / 2;
    for (let i = 0; i < sums.length; i += 2) {
      this.#high ^= sums[i] ?? 0;
      this.#low ^= sums[i + 1] ?? 0;
    }
  }

  /** How many pages the database has. */
  get count(): number {
    return this.#count;
  }

  get checksum(): bigint {
    return joined(this.#high | 0x80000000, this.#low);
  }

  /** What `pages` make of the database when it then has `commit` pages. */
  change(pages: readonly Page[], commit: number): TableChange {
    const sums = new Uint32Array(pages.length * 2);
    let high = this.#high;
    let low = this.#low;
    for (const [i, page] of pages.entries()) {
      const { number } = page;
      if (number === this.#lock_page || number > commit) continue;
      const [h, l] = sumOf(page);
      sums[i * 2] = h;
      sums[i * 2 + 1] = l;
      high ^= h ^ this.#high_of(number);
      low ^= l ^ this.#low_of(number);
    }
    for (let number = commit + 1; number <= this.#count; number++) {
      high ^= this.#high_of(number);
      low ^= this.#low_of(number);
    }
    return { pages, sums, commit, high, low, checksum: joined(high | 0x80000000, low) };
  }

  accept({ pages, sums, commit, high, low }: TableChange): void {
    this.#resize(commit);
    for (const [i, { number }] of pages.entries()) {
      if (number > commit) continue;
      this.#sums[(number - 1) * 2] = sums[i * 2] ?? 0;
      this.#sums[(number - 1) * 2 + 1] = sums[i * 2 + 1] ?? 0;
    }
    this.#high = high;
    this.#low = low;
  }

  /** True when `number` is known to have exactly the content whose checksum the other table has. */
  samePage(other: PageTable, number: number): boolean {
    return this.#high_of(number) === other.#high_of(number) && this.#low_of(number) === other.#low_of(number);
  }

  /** The checksum of a page; 0 when the database does not have it. */
  sumOf(number: number): bigint {
    return joined(this.#high_of(number), this.#low_of(number));
  }

  /** True when the page has the content that its checksum says. */
  holds(page: Page): boolean {
    const [high, low] = sumOf(page);
    return high >>> 0 === this.#high_of(page.number) && low >>> 0 === this.#low_of(page.number);
  }

  /** True when the checksum of every page is known. */
  get complete(): boolean {
    for (let number = 1; number <= this.#count; number++) {
      // Every checksum of a page has its top bit.
      if (this.#high_of(number) === 0 && number !== this.#lock_page) return false;
    }
    return true;
  }

  /** Forgets what is known of all other pages. */
  keepOnly(wanted: (page: number) => boolean): void {
    for (let number = 1; number <= this.#count; number++) {
      if (wanted(number)) continue;
      this.#high ^= this.#high_of(number);
      this.#low ^= this.#low_of(number);
      this.#sums.fill(0, (number - 1) * 2, number * 2);
    }
  }

  /** The checksum of every whole block of pages; an empty text where a page of it is not known. */
  blockSums(): string[] {
    const blocks: string[] = [];
    for (let first = 1; first + BLOCK_PAGES - 1 <= this.#count; first += BLOCK_PAGES)
      blocks.push(this.#blockSum(first));
    return blocks;
  }

  #blockSum(first: number): string {
    let [high, low] = [0, 0];
    for (let number = first; number < first + BLOCK_PAGES; number++) {
      // Every checksum of a page has its top bit.
      if (this.#high_of(number) === 0 && number !== this.#lock_page) return "";
      high ^= this.#high_of(number);
      low ^= this.#low_of(number);
    }
    return joined(high >>> 0, low >>> 0).toString(16);
  }

  /** A copy of the checksums, two 32-bit words per page, to be stored on disk; the table itself keeps changing. */
  copy(): Uint32Array {
    return this.#sums.slice(0, this.#count * 2);
  }

  #high_of(number: number): number {
    return number <= this.#count ? (this.#sums[(number - 1) * 2] ?? 0) : 0;
  }

  #low_of(number: number): number {
    return number <= this.#count ? (this.#sums[(number - 1) * 2 + 1] ?? 0) : 0;
  }

  #resize(count: number): void {
    if (count * 2 > this.#sums.length) {
      const grown = new Uint32Array(Math.max(count * 2, this.#sums.length * 2, 1024));
      grown.set(this.#sums.subarray(0, this.#count * 2));
      this.#sums = grown;
    }
    if (count < this.#count) this.#sums.fill(0, count * 2, this.#count * 2);
    this.#count = count;
  }
}
