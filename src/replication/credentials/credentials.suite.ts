import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { REPLICATION_LIMITS } from "../limits.ts";
import { type Credentials, sha256 } from "./credentials.ts";

export interface OpenedCredentials {
  /** Two nodes of one cluster. */
  here: Credentials;
  there: Credentials;
  /** A node of another. */
  stranger: Credentials;
  now_ms: number;
}

/** What every kind of credentials must do. */
export function credentialsSuite(name: string, open: (t: TestContext) => Promise<OpenedCredentials>): void {
  suite(`credentials: ${name}`, () => {
    const request = { method: "POST", path: "/stream?x=1", body_sha256: sha256("{}") };

    test("a valid request is accepted once, and the response's proof matches it", async (t) => {
      const { here, there, now_ms } = await open(t);
      const { headers, nonce } = await here.sign(request, now_ms);
      assert.equal(await there.verify(request, headers, now_ms + 1000), nonce);
      assert.equal(await there.verify(request, headers, now_ms + 1000), undefined);
      const proof = await there.prove(nonce, 7);
      assert.ok(await here.proves(proof, nonce, 7, now_ms));
      assert.ok(!(await here.proves(proof, nonce, 8, now_ms)));
      assert.ok(!(await here.proves(proof, "0".repeat(32), 7, now_ms)));
      assert.ok(!(await here.proves(undefined, nonce, 7, now_ms)));
    });

    test("a modified or expired request is refused", async (t) => {
      const { here, there, now_ms } = await open(t);
      const { headers } = await here.sign(request, now_ms);
      const refused = async (changed: Partial<typeof request>, given = headers, at_ms = now_ms): Promise<void> =>
        assert.equal(await there.verify({ ...request, ...changed }, given, at_ms), undefined);
      await refused({ method: "GET" });
      await refused({ path: "/handoff" });
      await refused({ body_sha256: sha256("{} ") });
      await refused({}, {});
      for (const name of Object.keys(headers)) {
        await refused({}, { ...headers, [name]: "nonsense" });
        await refused(
          {},
          { ...headers, [name]: `${headers[name]}`.replace(/[\w-](?=.{20}$)/, (c) => (c === "a" ? "b" : "a")) },
        );
      }
      const late_ms = 2 * REPLICATION_LIMITS.signature_age_ms + 2000;
      await refused({}, headers, now_ms + late_ms);
      await refused({}, headers, now_ms - late_ms);
      assert.ok(await there.verify(request, headers, now_ms));
    });

    test("a stranger's credentials are refused, on both ends", async (t) => {
      const { here, stranger, now_ms } = await open(t);
      const { headers } = await stranger.sign(request, now_ms);
      assert.equal(await here.verify(request, headers, now_ms), undefined);
      const { nonce } = await here.sign(request, now_ms);
      assert.ok(!(await here.proves(await stranger.prove(nonce, 7), nonce, 7, now_ms)));
    });
  });
}
