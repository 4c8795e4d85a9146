import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../../test/support.ts";
import { Budget } from "./budget.ts";
import { ResponseReader } from "./response.ts";

const TEXT = "jobs 1\nup 2\n";
const OK = "HTTP/1.1 200 OK\r\n";

/** The response after these chunks, and after the end of the connection. */
function read(pieces: readonly Buffer[], ends = true): ResponseReader {
  const reader = new ResponseReader(new Budget().open("org"));
  for (const piece of pieces) reader.take(piece, piece.length);
  if (ends && !reader.done) reader.end();
  return reader;
}

const whole = (text: string): ResponseReader => read([Buffer.from(text, "latin1")]);
const chunked = (...lines: string[]): string => `${OK}transfer-encoding: chunked\r\n\r\n${lines.join("")}`;

/** Encodings of a response that all mean the same text. */
const SAME: Record<string, { answer: string; keeps: boolean }> = {
  "a length": { answer: `${OK}Content-Length: ${TEXT.length}\r\n\r\n${TEXT}`, keeps: true },
  "the same length twice": {
    answer: `${OK}content-length: ${TEXT.length}\r\nContent-Length:${TEXT.length}\r\n\r\n${TEXT}`,
    keeps: true,
  },
  chunks: { answer: chunked("7\r\njobs 1\n\r\n", "5\r\nup 2\n\r\n", "0\r\n\r\n"), keeps: true },
  "chunks with extensions and trailers": {
    answer: chunked("07;a=b\r\njobs 1\n\r\n", "5 \r\nup 2\n\r\n", "0;x\r\ndate: today\r\nx: y\r\n\r\n"),
    keeps: true,
  },
  "chunks and a length, which does not count": {
    answer: `${OK}content-length: 3\r\ntransfer-encoding: Chunked\r\n\r\nC\r\n${TEXT}\r\n0\r\n\r\n`,
    keeps: false,
  },
  "the end of the connection": { answer: `${OK}\r\n${TEXT}`, keeps: false },
  "no wish for another": { answer: `${OK}connection: Close\r\ncontent-length: 12\r\n\r\n${TEXT}`, keeps: false },
  "an old protocol": { answer: `HTTP/1.0 200 OK\r\ncontent-length: 12\r\n\r\n${TEXT}`, keeps: false },
  "a hint before": {
    answer: `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}content-length: 12\r\n\r\n${TEXT}`,
    keeps: true,
  },
};

suite("scrape responses", () => {
  for (const [how, { answer, keeps }] of Object.entries(SAME))
    test(`${how}: the text is the same, wherever the network splits it`, () => {
      const bytes = Buffer.from(answer, "latin1");
      for (let first = 0; first <= bytes.length; first++) {
        const reader = read([bytes.subarray(0, first), bytes.subarray(first)]);
        assert.equal(reader.body.view.toString(), TEXT, `cut at ${first}`);
        assert.deepEqual([reader.done, reader.keeps], [true, keeps]);
      }
      const single = read(Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)));
      assert.equal(single.body.view.toString(), TEXT);
    });

  test("format and encoding come from the headers", () => {
    const { head } = whole(
      `${OK}content-type: application/openmetrics-text; version=1.0.0\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n`,
    );
    assert.deepEqual([head?.format, head?.gzip], ["openmetrics", true]);
    assert.equal(whole(`${OK}content-length: 0\r\n\r\n`).head?.format, "prometheus");
  });

  const REFUSED: [answer: string, says: RegExp][] = [
    ["hello\r\n\r\n", /not HTTP\/1\.1/],
    ["HTTP/2 200\r\n\r\n", /not HTTP\/1\.1/],
    [`${OK}no colon\r\n\r\n`, /no header/],
    [`${OK}x: ${"y".repeat(20_000)}\r\n\r\n`, /longer than 16384 bytes \(head_bytes\)/],
    [`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\na`, /two lengths/],
    [`${OK}content-length: -1\r\n\r\n`, /not a number/],
    [`${OK}content-length: 99999999\r\n\r\n`, /larger than 16 MB/],
    [`${OK}transfer-encoding: gzip, chunked\r\n\r\n`, /transfer-encoding gzip, chunked/],
    [`${OK}content-encoding: br\r\n\r\n`, /content-encoding br/],
    ["HTTP/1.1 302 Found\r\nlocation: /\r\n\r\n", /redirect is not followed/],
    ["HTTP/1.1 500 No\r\n\r\n", /it answered 500/],
    [`${OK}content-length: 9\r\n\r\na`, /aborted halfway/],
    [chunked("3\r\nabc\r\n"), /aborted halfway/],
    [chunked("\r\n"), /no size/],
    [chunked("xyz\r\n"), /no size/],
    [chunked("fffffffff\r\n"), /larger than 16 MB/],
    [chunked(`1;${"x".repeat(20_000)}`), /never ends/],
    [chunked("0\r\n", "a: b\r\n".repeat(5000)), /never ends/],
  ];
  for (const [answer, says] of REFUSED)
    test(`response is refused: ${JSON.stringify(answer.slice(0, 60))}`, () => {
      assert.throws(() => whole(answer), { name: "ScrapeFailure", message: says });
    });

  test("surplus bytes end the connection and are not part of the response", () => {
    const reader = whole(`${OK}content-length: 12\r\n\r\n${TEXT}HTTP/1.1 200 OK\r\n`);
    assert.deepEqual([reader.body.view.toString(), reader.keeps], [TEXT, false]);
  });

  test("an endless body is dropped at its limit, chunked or not", () => {
    const mebibyte = Buffer.alloc(2 ** 20, "a");
    for (const head of [`${OK}\r\n`, chunked("fffffff\r\n")]) {
      const pieces = [Buffer.from(head), ...Array.from({ length: 17 }, () => mebibyte)];
      assert.throws(() => read(pieces), { name: "ScrapeFailure", too_large: true });
    }
  });

  test("random bytes end in a response or a ScrapeFailure", (t) => {
    const roll = random(seed(t));
    const answers = Object.values(SAME).map(({ answer }) => answer);
    for (let run = 0; run < runs(5000); run++) {
      const bytes = Buffer.from(answers[run % answers.length] ?? "", "latin1");
      for (let n = 0; n < 3; n++) bytes[Math.floor(roll() * bytes.length)] = Math.floor(roll() * 256);
      const cut = Math.floor(roll() * bytes.length);
      try {
        assert.ok(read([bytes.subarray(0, cut), bytes.subarray(cut)]).body.length <= bytes.length);
      } catch (error) {
        assert.equal((error as Error).name, "ScrapeFailure", JSON.stringify(bytes.toString("latin1")));
      }
    }
  });
});
