import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../test/support.ts";
import { Mask } from "./mask.ts";

suite("secret mask", () => {
  test("a secret is masked however the stream is split, and nothing else changes (G7)", (t) => {
    const next = random(seed(t));
    const secret = "s3cret/with+signs==";
    for (let i = 0; i < runs(300); i++) {
      const parts = Array.from({ length: 12 }, () =>
        next() < 0.4
          ? [secret, encodeURIComponent(secret)][Math.floor(next() * 2)]
          : ["s3cret", "s", "text ", "s3cret/with"][Math.floor(next() * 4)],
      );
      const text = parts.join(next() < 0.5 ? "" : "-");
      const mask = new Mask([secret]);
      const out: Buffer[] = [];
      for (let at = 0; at < text.length; ) {
        const size = 1 + Math.floor(next() * 9);
        out.push(mask.push(Buffer.from(text.slice(at, at + size))));
        at += size;
      }
      out.push(mask.end());
      const stars = (needle: string): string => "*".repeat(needle.length);
      const want = text.replaceAll(secret, stars).replaceAll(encodeURIComponent(secret), stars);
      assert.equal(Buffer.concat(out).toString(), want);
    }
  });

  test("bytes that cannot begin a secret are passed on at once", () => {
    const mask = new Mask(["abcdefgh"]);
    assert.equal(mask.push(Buffer.from("data: 1\n\n")).toString(), "data: 1\n\n");
    assert.equal(mask.push(Buffer.from("xabc")).toString(), "x");
    assert.equal(mask.push(Buffer.from("x")).toString(), "abcx");
  });
});
