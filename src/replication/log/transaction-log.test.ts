import assert from "node:assert/strict";
import { appendFileSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { decodeLtx, encodeLtx } from "../ltx/codec.ts";
import { NO_PAGES } from "../position.ts";
import type { LogRecord } from "./record.ts";
import { TransactionLog } from "./transaction-log.ts";

function aRecord(txid: number): LogRecord {
  const header = {
    page_size: 512,
    commit: 3,
    min_txid: txid,
    max_txid: txid,
    timestamp_ms: 1_700_000_000_000,
    pre_checksum: txid === 1 ? 0n : NO_PAGES | BigInt(txid - 1),
    wal_offset: 0,
    wal_size: 0,
    salt1: 0,
    salt2: 0,
    node_id: 1n,
  };
  const pages = [{ number: 2, data: Buffer.from(new ArrayBuffer(512)).fill(txid) }];
  const ltx = encodeLtx(header, pages, NO_PAGES | BigInt(txid));
  return { txid, term: 4, cursor: { salt1: 1, salt2: 2, frame: txid, sum0: 3, sum1: txid }, ltx };
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

suite("transaction log", () => {
  test("records survive a restart, over many segments", (t) => {
    const dir = tempDir();
    const log = new TransactionLog(dir, { segment_bytes: 2000, recent_bytes: 1000 });
    for (const txid of range(1, 50)) log.append([aRecord(txid)]);
    log.append(range(51, 60).map(aRecord));
    log.close();
    const again = new TransactionLog(dir);
    t.after(() => again.close());
    assert.deepEqual([again.base, again.last, again.durable], [0, 60, 60]);
    for (const txid of range(1, 60)) {
      assert.deepEqual(again.read(txid), aRecord(txid).ltx);
      assert.equal(again.checksumAt(txid), NO_PAGES | BigInt(txid));
      assert.equal(again.header(txid)?.cursor?.frame, txid);
      assert.equal(again.header(txid)?.term, 4);
    }
    assert.equal(again.read(61), undefined);
    assert.ok(readdirSync(dir).length > 5);
  });

  test("a torn tail is truncated, whatever its length", (t) => {
    const dir = tempDir();
    const log = new TransactionLog(dir);
    log.append(range(1, 3).map(aRecord));
    log.close();
    const [file = ""] = readdirSync(dir);
    const whole = statSync(join(dir, file)).size / 3;
    for (let cut = 1; cut < whole; cut += 37) {
      truncateSync(join(dir, file), whole * 3 - cut);
      const again = new TransactionLog(dir);
      assert.equal(again.last, 2);
      again.append([aRecord(3)]);
      again.close();
    }
    appendFileSync(join(dir, file), Buffer.alloc(700, 0xff));
    const again = new TransactionLog(dir);
    t.after(() => again.close());
    assert.equal(again.last, 3);
  });

  test("a damaged segment in the middle costs the segments up to it, which are moved aside", (t) => {
    const dir = tempDir();
    const log = new TransactionLog(dir, { segment_bytes: 1000 });
    for (const txid of range(1, 12)) log.append([aRecord(txid)]);
    log.close();
    const files = readdirSync(dir).sort();
    writeFileSync(join(dir, files[2] ?? ""), "nonsense");
    const again = new TransactionLog(dir);
    t.after(() => again.close());
    assert.equal(again.last, 12);
    assert.equal(again.base, Number(`0x${files[3]?.slice(0, 16)}`) - 1);
    assert.equal(again.damaged.length, 3);
  });

  test("cutAfter drops the tail, reset drops everything, and both allow new appends", (t) => {
    const dir = tempDir();
    const log = new TransactionLog(dir, { segment_bytes: 1000 });
    for (const txid of range(1, 12)) log.append([aRecord(txid)]);
    log.cutAfter(5);
    assert.deepEqual([log.last, log.read(6)], [5, undefined]);
    log.append([aRecord(6)]);
    assert.throws(() => log.append([aRecord(9)]), /cannot follow/);
    log.reset(40);
    assert.deepEqual([log.base, log.last, readdirSync(dir).length], [40, 40, 0]);
    log.append([aRecord(41)]);
    log.close();
    const again = new TransactionLog(dir);
    t.after(() => again.close());
    assert.deepEqual([again.base, again.last], [40, 41]);
  });

  test("retention deletes old or excess segments, never those still needed", (t) => {
    const log = new TransactionLog(tempDir(), { segment_bytes: 1000 });
    t.after(() => log.close());
    for (const txid of range(1, 20)) log.append([aRecord(txid)]);
    const now = Date.parse("2100-01-01");
    log.retain(0, 20, 1000, 1e9);
    assert.equal(log.base, 0);
    log.retain(now, 3, 1000, 1e9);
    assert.equal(log.base, 2);
    log.retain(0, 20, 1e15, 3000);
    assert.ok(log.base > 10 && log.read(20) !== undefined);
    log.retain(now, 20, 1000, 0);
    assert.ok(log.read(20) !== undefined);
  });

  test("concurrent callers of sync share one fsync, and all their records are durable after it", async (t) => {
    const log = new TransactionLog(tempDir());
    t.after(() => log.close());
    log.append([aRecord(1)]);
    assert.equal(log.durable, 0);
    const first = log.sync();
    log.append([aRecord(2)]);
    assert.equal(log.sync(), first);
    await first;
    assert.equal(log.durable, 2);
  });

  test("recent transactions leave the memory when none was written for a while, and are read from disk", (t) => {
    const log = new TransactionLog(tempDir());
    t.after(() => log.close());
    log.append([aRecord(1), aRecord(2)]);
    log.forgetIfIdle();
    log.forgetIfIdle();
    assert.ok(log.recent(2), "it is not on disk for good yet");
    log.syncNow();
    log.append([aRecord(3)]);
    log.syncNow();
    log.forgetIfIdle();
    assert.ok(log.recent(3), "it was just written");
    log.forgetIfIdle();
    assert.equal(log.recent(3), undefined);
    assert.equal(decodeLtx(log.read(3) ?? Buffer.alloc(0)).header.max_txid, 3);
  });

  test("memory that is used again never shows one transaction in place of another", (t) => {
    const log = new TransactionLog(tempDir(), { recent_bytes: 3 * 1024 * 1024 });
    t.after(() => log.close());
    const found = (txid: number): number[] => {
      const { header, pages } = decodeLtx(log.read(txid) ?? Buffer.alloc(0));
      return [header.max_txid, pages[0]?.data[0] ?? -1];
    };
    // Several times what is remembered, so that every piece of memory is used more than once.
    for (const last of range(1, 12).map((thousand) => thousand * 1000)) {
      log.append(range(last - 999, last).map(aRecord));
      for (const txid of range(last - 999, last)) assert.deepEqual(found(txid), [txid, txid % 256]);
    }
    for (const txid of range(1, 12_000)) assert.deepEqual(found(txid), [txid, txid % 256]);
  });
});
