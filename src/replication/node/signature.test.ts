import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Signer } from "./signature.ts";

suite("signatures between nodes", () => {
  const request = { method: "POST", path: "/stream", body: Buffer.from("{}") };
  const now_ms = 1_700_000_000_000;

  test("a good one is accepted once, and the answer's proof fits it", () => {
    const [here, there] = [new Signer("key"), new Signer("key")];
    const { header, nonce } = here.sign(request, now_ms);
    assert.equal(there.verify(request, header, now_ms + 1000), nonce);
    assert.equal(there.verify(request, header, now_ms + 1000), undefined);
    assert.ok(here.proves(there.prove(nonce, 7), nonce, 7));
    assert.ok(!here.proves(there.prove(nonce, 7), nonce, 8));
    assert.ok(!here.proves(undefined, nonce, 7));
  });

  test("anything that was changed is refused, and so is anything old", () => {
    const [here, there] = [new Signer("key"), new Signer("key")];
    const { header } = here.sign(request, now_ms);
    const refused = (changed: Partial<typeof request>, value: string | undefined = header, at_ms = now_ms): void =>
      assert.equal(there.verify({ ...request, ...changed }, value, at_ms), undefined);
    refused({ method: "GET" });
    refused({ path: "/handoff" });
    refused({ body: Buffer.from("{} ") });
    refused(
      {},
      header.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    );
    refused({}, "");
    refused({}, "nonsense");
    refused({}, header, now_ms + REPLICATION_LIMITS.signature_age_ms + 1);
    refused({}, header, now_ms - REPLICATION_LIMITS.signature_age_ms - 1);
    assert.equal(new Signer("other").verify(request, header, now_ms), undefined);
    assert.ok(there.verify(request, header, now_ms));
  });
});
