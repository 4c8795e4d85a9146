import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { signedHeaders } from "#core/s3-signature.ts";
import { random, runs, seed } from "../../test/support.ts";
import { Mask } from "./mask.ts";

suite("mask", () => {
  test("a secret is hidden however the stream is cut, and nothing else changes (G7)", (t) => {
    const next = random(seed(t));
    const secret = "s3cret/with+signs==";
    for (let i = 0; i < runs(300); i++) {
      const words = Array.from({ length: 12 }, () =>
        next() < 0.4
          ? [secret, encodeURIComponent(secret)][Math.floor(next() * 2)]
          : ["s3cret", "s", "text ", "s3cret/with"][Math.floor(next() * 4)],
      );
      const text = words.join(next() < 0.5 ? "" : "-");
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

  test("what cannot be the beginning of the secret is not held back", () => {
    const mask = new Mask(["abcdefgh"]);
    assert.equal(mask.push(Buffer.from("data: 1\n\n")).toString(), "data: 1\n\n");
    assert.equal(mask.push(Buffer.from("xabc")).toString(), "x");
    assert.equal(mask.push(Buffer.from("x")).toString(), "abcx");
  });
});

suite("signatures of object stores", () => {
  test("the signature of the published example is the published one", () => {
    const { authorization } = signedHeaders(
      {
        method: "GET",
        path: "/test.txt",
        query: "",
        host: "examplebucket.s3.amazonaws.com",
        headers: { range: "bytes=0-9" },
        access_key_id: "AKIAIOSFODNN7EXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
        now_ms: Date.UTC(2013, 4, 24),
      },
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
    assert.match(authorization ?? "", /Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41$/);
  });
});
