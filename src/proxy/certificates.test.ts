import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Box } from "#core/box.ts";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { Certificates } from "./certificates.ts";
import type { ProxyStore, StoredCertificate } from "./store.ts";
import { selfSigned } from "./x509.ts";

/** Certificates in memory, without an authority; `fail` makes the next that is written fail. */
function aRoom() {
  const rows = new Map<string, StoredCertificate>();
  const broken = { fail: false };
  const put = async (one: StoredCertificate): Promise<boolean> => {
    if (broken.fail) throw new Error("the store is away");
    return Boolean(rows.set(one.hostname, one));
  };
  const store: Partial<ProxyStore> = {
    certificates: async () => [...rows.values()],
    insertCertificate: async (one) => ((await put(one)) ? "inserted" : "taken"),
    putCertificate: put,
  };
  const clock = virtualClock();
  const certificates = new Certificates({
    store: store as ProxyStore,
    box: new Box(new Uint8Array(32)),
    clock,
    log: silentLog,
    domain: "localhost",
    directory_url: "",
    directory_ca: undefined,
    publish() {},
    answer: async () => {},
    onChange() {},
  });
  return { certificates, clock, rows, broken };
}

suite("certificates", () => {
  test("a store that is away for a moment costs one try, not all that come after it", async (t) => {
    const { certificates, clock, rows, broken } = aRoom();
    t.after(() => certificates.close());
    await certificates.addAcme("a1", "one.example.com");
    broken.fail = true;
    await clock.advance(0);
    broken.fail = false;
    await certificates.addAcme("a1", "two.example.com");
    await clock.advance(0);
    assert.deepEqual([rows.get("one.example.com")?.state, rows.get("two.example.com")?.state], ["pending", "failed"]);
    await clock.advance(20 * 60_000);
    assert.equal(rows.get("one.example.com")?.state, "failed", "it was tried again");
  });

  test("a chain that no TLS server could use is refused when it is brought", async () => {
    const { certificates, clock } = aRoom();
    const hostname = "own.example.com";
    const { chain, key: private_key } = selfSigned([hostname], clock.now());
    const torn = `${chain}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`;
    const wrong = certificates.addCustom("a1", { hostname, fullchain: torn, private_key });
    await assert.rejects(wrong, { code: "invalid_request", message: /cannot be used for TLS/ });
    assert.equal((await certificates.addCustom("a1", { hostname, fullchain: chain, private_key })).state, "ready");
  });
});
