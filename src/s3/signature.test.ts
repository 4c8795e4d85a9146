import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { signedHeaders } from "./signature.ts";

suite("S3 request signatures", () => {
  test("the signature of AWS's published example matches", () => {
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
