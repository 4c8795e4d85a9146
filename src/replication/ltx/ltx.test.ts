import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, seed } from "../../../test/support.ts";
import { NO_PAGES } from "../position.ts";
import { decodeLtx, encodeLtx, LtxError, type LtxHeader } from "./codec.ts";
import { Crc64 } from "./crc64.ts";
import { lz4Bound, lz4Compress, lz4Expand, lz4Store, lz4Stored } from "./lz4.ts";
import { lockPage, type Page, PageTable } from "./page-table.ts";
import { Slab } from "./slab.ts";

function bytes(next: () => number, length: number, variety = 256): Buffer {
  const made = Buffer.from(new ArrayBuffer(length));
  for (let i = 0; i < length; i++) made[i] = Math.floor(next() * variety);
  return made;
}

function aHeader(changes: Partial<LtxHeader> = {}): LtxHeader {
  return {
    page_size: 512,
    commit: 9,
    min_txid: 7,
    max_txid: 7,
    timestamp_ms: 1_700_000_000_123,
    pre_checksum: NO_PAGES | 5n,
    wal_offset: 32,
    wal_size: 1072,
    salt1: 0xfedcba98,
    salt2: 0x12345678,
    node_id: 42n,
    ...changes,
  };
}

/** The definition, bit by bit, to hold the fast one against. */
function slowCrc(data: Uint8Array): bigint {
  let crc = 0xffffffffffffffffn;
  for (const byte of data) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1n) === 1n ? (crc >> 1n) ^ 0xd800000000000000n : crc >> 1n;
  }
  return crc ^ 0xffffffffffffffffn;
}

suite("CRC-64/ISO", () => {
  test('the checksum of "123456789" is the published value', () => {
    const crc = new Crc64();
    crc.update(Buffer.from("123456789"));
    assert.equal((BigInt(crc.high) << 32n) | BigInt(crc.low), 0xb90956c775a41001n);
  });

  test("the checksum agrees with the definition for every length and alignment", (t) => {
    const next = random(seed(t));
    const pool = bytes(next, 400);
    for (let length = 0; length < 200; length++) {
      const part = pool.subarray(length % 9, (length % 9) + length);
      const crc = new Crc64();
      crc.update(part);
      assert.equal((BigInt(crc.high) << 32n) | BigInt(crc.low), slowCrc(part), `length ${length}`);
    }
  });
});

suite("combined checksums", () => {
  test("absorbing a computed checksum equals reading the bytes again", (t) => {
    const next = random(seed(t));
    for (let size = 512; size <= 65536; size *= 2) {
      const summed = { data: bytes(next, size) };
      for (const before of ["", "a", "another beginning"]) {
        const [read, absorbed] = [new Crc64(), new Crc64()];
        for (const crc of [read, absorbed]) crc.update(Buffer.from(before));
        read.update(summed.data);
        absorbed.absorb(summed);
        assert.equal(absorbed.flagged, read.flagged, `${size} bytes after "${before}"`);
      }
    }
  });
});

suite("LZ4 blocks", () => {
  test("compressed pages are decompressed unchanged, at every page size", (t) => {
    const next = random(seed(t));
    for (let size = 512; size <= 65536; size *= 2) {
      for (const variety of [1, 2, 5, 256]) {
        const page = bytes(next, size, variety);
        for (const pack of [lz4Store, lz4Compress]) {
          const packed = Buffer.alloc(lz4Bound(size) + 3);
          const length = pack(page, packed, 3);
          const back = Buffer.alloc(size);
          lz4Expand(packed.subarray(3, 3 + length), back);
          assert.ok(back.equals(page), `${size} bytes of ${variety} values`);
        }
      }
    }
  });

  test("a stored block is recognized as one, and no other is", (t) => {
    const next = random(seed(t));
    for (const size of [1, 14, 15, 16, 269, 270, 271, 512, 4096, 65536]) {
      const page = bytes(next, size, 255);
      const packed = Buffer.alloc(lz4Bound(size) + 5);
      const length = lz4Store(page, packed, 3);
      const at = lz4Stored(packed, 3, 3 + length, size);
      assert.deepEqual(packed.subarray(at, at + size), page);
      assert.equal(lz4Stored(packed, 3, 3 + length, size + 1), -1);
      assert.equal(lz4Stored(packed, 3, 4 + length, size), -1);
      for (let place = 3; place < at; place++) {
        const other = Buffer.from(packed);
        other[place] = (other[place] ?? 0) ^ 1;
        assert.equal(lz4Stored(other, 3, 3 + length, size), -1, `${size}: byte ${place}`);
      }
    }
  });

  test("compression saves space", () => {
    const packed = Buffer.alloc(lz4Bound(4096));
    assert.ok(lz4Compress(Buffer.alloc(4096), packed, 0) < 64);
  });

  test("a damaged block is refused, and never read past its end", (t) => {
    const next = random(seed(t));
    const page = bytes(next, 4096, 4);
    const packed = Buffer.alloc(lz4Bound(4096));
    const length = lz4Compress(page, packed, 0);
    for (let i = 0; i < 2000; i++) {
      const bad = Buffer.from(packed.subarray(0, length - (i % 3)));
      bad[Math.floor(next() * bad.length)] = Math.floor(next() * 256);
      try {
        lz4Expand(bad, Buffer.alloc(4096));
      } catch (error) {
        assert.equal(error instanceof Error && error.name, "Lz4Error");
      }
    }
  });
});

suite("LTX files", () => {
  const pages = (next: () => number): Page[] => [1, 2, 5, 9].map((number) => ({ number, data: bytes(next, 512, 7) }));

  test("an encoded file is decoded unchanged, stored or compressed", (t) => {
    const next = random(seed(t));
    for (const packing of ["store", "compress"] as const) {
      const written = pages(next);
      const read = decodeLtx(encodeLtx(aHeader(), written, NO_PAGES | 77n, packing));
      assert.deepEqual(read, { header: aHeader(), pages: written, post_checksum: NO_PAGES | 77n });
    }
  });

  test("a file is decoded at any memory alignment", (t) => {
    const file = encodeLtx(aHeader(), pages(random(seed(t))), NO_PAGES | 77n);
    const original = decodeLtx(file);
    for (let at = 1; at < 9; at++) {
      const memory = Buffer.alloc(at + file.length);
      file.copy(memory, at);
      assert.deepEqual(decodeLtx(memory.subarray(at)), original);
    }
  });

  test("a deleted database is a file without pages", () => {
    const file = encodeLtx(aHeader({ commit: 0 }), [], NO_PAGES);
    assert.equal(decodeLtx(file).header.commit, 0);
  });

  test("a damaged byte is detected unless the decoded content is the same", (t) => {
    const next = random(seed(t));
    const file = encodeLtx(aHeader(), pages(next), NO_PAGES | 77n, "compress");
    const original = decodeLtx(file);
    let noticed = 0;
    for (let at = 0; at < file.length; at++) {
      const bad = Buffer.from(file);
      bad[at] = (bad[at] ?? 0) ^ (1 + Math.floor(next() * 255));
      try {
        assert.deepEqual(decodeLtx(bad), original, `byte ${at}`);
      } catch (error) {
        assert.ok(error instanceof LtxError, `byte ${at}: ${String(error)}`);
        noticed++;
      }
    }
    assert.ok(noticed > file.length * 0.95);
  });

  test("a truncated file is refused at every length", (t) => {
    const file = encodeLtx(aHeader(), pages(random(seed(t))), NO_PAGES | 77n);
    for (let length = 0; length < file.length; length += 7) {
      assert.throws(() => decodeLtx(file.subarray(0, length)), LtxError);
    }
  });
});

suite("page table", () => {
  test("the incremental checksum equals that of a new table", (t) => {
    const next = random(seed(t));
    const content = new Map<number, Buffer>();
    const table = new PageTable(512);
    for (let round = 0; round < 50; round++) {
      const commit = 1 + Math.floor(next() * 40);
      const numbers = new Set(Array.from({ length: 10 }, () => 1 + Math.floor(next() * commit)));
      for (let number = table.count + 1; number <= commit; number++) numbers.add(number);
      const changed = [...numbers].map((number) => ({ number, data: bytes(next, 512) }));
      for (const { number, data } of changed) content.set(number, data);
      for (const number of content.keys()) if (number > commit) content.delete(number);
      const change = table.change(changed, commit);
      table.accept(change);
      const fresh = new PageTable(512);
      fresh.accept(
        fresh.change(
          [...content].map(([number, data]) => ({ number, data })),
          commit,
        ),
      );
      assert.equal(table.checksum, fresh.checksum);
      assert.equal(change.checksum, fresh.checksum);
      assert.equal(new PageTable(512, table.copy()).checksum, fresh.checksum);
    }
  });

  test("the lock page does not count in the checksum", () => {
    assert.equal(lockPage(4096), 262145);
    assert.equal(lockPage(65536), 16385);
    const table = new PageTable(65536);
    const change = table.change([{ number: 16385, data: Buffer.alloc(65536, 1) }], 20000);
    assert.equal(change.checksum, NO_PAGES);
  });
});

suite("slab memory", () => {
  const fill = (slab: Slab, pieces: number): Buffer[] =>
    Array.from({ length: pieces }, () => slab.keep(slab.reserve(100_000), 100_000));

  test("a slab is reused only after everything in it was returned", () => {
    const slab = new Slab();
    const first = fill(slab, 10);
    const memory = first[0]?.buffer;
    fill(slab, 10);
    for (const piece of first.slice(1)) slab.giveBack(piece);
    assert.ok(!fill(slab, 20).some(({ buffer }) => buffer === memory));
    slab.giveBack(first[0] ?? Buffer.alloc(0));
    assert.equal(fill(slab, 20).filter(({ buffer }) => buffer === memory).length, 10);
  });

  test("large or foreign buffers can be returned, too", () => {
    const slab = new Slab();
    const large = slab.reserve(500_000);
    slab.giveBack(slab.keep(large, 400_000));
    slab.giveBack(Buffer.alloc(5));
    assert.notEqual(slab.reserve(500_000).buffer, large.buffer);
  });
});
