import assert from "node:assert/strict";
import { suite, test } from "node:test";
import dns from "dns-packet";
import { workSince } from "../../../test/support.ts";
import { readQuestion, writeAnswer } from "./message.ts";
import { addressesIn } from "./records.ts";

const HEADER: Buffer = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
const FIXED = Buffer.from([0, 28, 0, 1]);
const message = (name: readonly number[], header = HEADER): Buffer => Buffer.concat([header, Buffer.from(name), FIXED]);

const queryWith = (udpPayloadSize: number): Buffer =>
  dns.encode({
    type: "query",
    questions: [{ type: "A", name: "web.internal" }],
    additionals: [
      {
        type: "OPT",
        name: ".",
        udpPayloadSize,
        flags: 0,
        options: [],
        extendedRcode: 0,
        ednsVersion: 0,
        flag_do: false,
      },
    ],
  });

suite("DNS messages", () => {
  test("a response repeats the question byte for byte, in mixed case and with bytes that are not text", () => {
    const name = [3, 0x57, 0x65, 0x42, 2, 0xff, 0xfe, 0];
    const question = readQuestion(message(name));
    assert.ok(question);
    assert.deepEqual([question.type, question.recursion, question.size], ["AAAA", true, 512]);
    const answer = writeAnswer(question, 0, [{ type: "AAAA", address: "fdaa::1" }]);
    assert.deepEqual(answer.subarray(12, 12 + name.length), Buffer.from(name));
    const [record] = dns.decode(answer).answers ?? [];
    assert.deepEqual([record?.type, record?.type === "AAAA" && record.data], ["AAAA", "fdaa::1"]);
  });

  test("pointers, other label types, two questions, responses and truncated messages are not queries", () => {
    const header = (at: number, value: number): Buffer => {
      const changed = Buffer.from(HEADER);
      changed[at] = value;
      return changed;
    };
    const bad = [
      message([0xc0, 12]),
      message([0xc0, 1]),
      message([1, 97, 0xc0, 12]),
      message([0x41, 97, 0]),
      message([63, 97, 0]),
      message([1, 97, 0], header(5, 2)),
      message([1, 97, 0], header(2, 0x81)),
      message([1, 97, 0], header(2, 0x29)),
      message([1, 97, 0]).subarray(0, -1),
      HEADER,
      Buffer.alloc(0),
    ];
    for (const bytes of bad) assert.equal(readQuestion(bytes), undefined, bytes.toString("hex"));
    assert.equal(readQuestion(message([1, 97, 0]))?.name, "a");
  });

  test("the EDNS size is clamped to 512 to 1232 bytes; broken options only reset the size", () => {
    const sizes = [100, 512, 1000, 4096].map((size) => readQuestion(queryWith(size))?.size);
    assert.deepEqual(sizes, [512, 512, 1000, 1232]);
    const broken = Buffer.from(queryWith(4096));
    broken.writeUInt16BE(9, broken.length - 2);
    assert.equal(readQuestion(broken)?.size, 512);
  });

  test("a header that announces more records than fit is rejected cheaply", () => {
    const hostile = message([1, 97, 0]);
    hostile.fill(0xff, 6, 12);
    const answer = Buffer.from(hostile);
    answer.fill(0xff, 4, 12);
    const before = process.cpuUsage();
    for (let n = 0; n < 1000; n++) {
      assert.equal(readQuestion(hostile)?.size, 512);
      assert.deepEqual(addressesIn(answer, "a"), []);
    }
    // Without the check of the counts each of the 2,000 messages takes 2 ms; with it, less than 0.1 ms.
    assert.ok(workSince(before) < 2000, `${workSince(before)} ms of work`);
  });

  test("long TXT values are split into several strings, an empty one is one string", () => {
    const question = readQuestion(message([1, 97, 0])) ?? assert.fail();
    for (const text of ["", "x".repeat(255), "y".repeat(256), "ü".repeat(400)]) {
      const answer = writeAnswer(question, 0, [{ type: "TXT", text }], 65_535);
      const [record] = dns.decode(answer).answers ?? [];
      assert.ok(record?.type === "TXT" && Array.isArray(record.data));
      assert.equal(Buffer.concat(record.data as Buffer[]).toString(), text);
    }
  });

  test("41 AAAA records fit into 1232 bytes, and the truncation flag is set for the rest", () => {
    const query = dns.encode({
      type: "query",
      questions: [{ type: "AAAA", name: "148e444f7d0987.vm.ledger-primary.internal" }],
    });
    const question = readQuestion(query) ?? assert.fail();
    const records = Array.from({ length: 100 }, () => ({ type: "AAAA" as const, address: "fdaa::1" }));
    const answer = writeAnswer(question, 0, records, 1232);
    const { answers, flag_tc } = dns.decode(answer);
    assert.deepEqual([answers?.length, flag_tc, answer.length <= 1232], [41, true, true]);
  });
});
