import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { suite, test } from "node:test";
import { Box } from "#core/box.ts";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import type { Issuer } from "./authority.ts";
import { Certificates } from "./certificates.ts";
import type { ProxyStore, StoredCertificate } from "./store.ts";
import { selfSigned } from "./x509.ts";

const HOUR = 3600_000;
const DAY = 24 * HOUR;

const NOBODY: Issuer = {
  configured: true,
  order: async () => {
    throw new Error("no authority");
  },
};

/** Certificates in memory; `fail` makes the next that is written fail. */
function aRoom(issuer = NOBODY) {
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
    issuer,
    publish() {},
    onChange() {},
  });
  return { certificates, clock, rows, broken };
}

/** An authority whose certificates are good for so long; it answers when `open` resolves. */
function anIssuer(lifetime_ms: number, open: Promise<void> = Promise.resolve()) {
  const orders: number[] = [];
  const issuer: Issuer = {
    configured: true,
    async order(hostname) {
      orders.push(room.clock.now());
      await open;
      const { chain, key } = selfSigned([hostname], room.clock.now(), lifetime_ms);
      return { chain, key: createPrivateKey(key) };
    },
  };
  const room = aRoom(issuer);
  return { ...room, orders };
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

  test("a certificate is refused at once when there is no authority to ask", async (t) => {
    const { certificates, rows } = aRoom({ ...NOBODY, configured: false });
    t.after(() => certificates.close());
    await assert.rejects(certificates.addAcme("a1", "one.example.com"), { code: "no_certificate_authority" });
    assert.equal(rows.size, 0);
  });

  test("a name that is asked for again and again is got once", async (t) => {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const { certificates, clock, orders } = anIssuer(90 * DAY, open);
    t.after(() => certificates.close());
    await certificates.addAcme("a1", "one.example.com");
    for (let n = 0; n < 100; n++) await certificates.check("a1", "one.example.com");
    resolve();
    await clock.advance(DAY);
    assert.equal((await certificates.get("a1", "one.example.com")).state, "ready");
    assert.equal(orders.length, 1);
  });

  test("certificates are renewed in time, also those for a few days; never in a hurry", async (t) => {
    for (const { lifetime, days, most } of [
      { lifetime: 90 * DAY, days: 90, most: 2 },
      { lifetime: 6 * DAY, days: 90, most: 25 },
      { lifetime: DAY, days: 90, most: 280 },
      // The box's clock is wrong: what it gets has always run out.
      { lifetime: -HOUR, days: 1, most: 4 * 24 + 1 },
    ]) {
      const { certificates, clock, orders } = anIssuer(lifetime);
      t.after(() => certificates.close());
      await certificates.addAcme("a1", "one.example.com");
      for (let passed = 0; passed < days * DAY; passed += 6 * HOUR) {
        await clock.advance(6 * HOUR);
        const { expires_at } = await certificates.get("a1", "one.example.com");
        assert.ok(lifetime < 0 || (expires_at ?? 0) > clock.now(), `${lifetime / DAY} days: never run out`);
      }
      assert.ok(orders.length > 1 && orders.length <= most, `${lifetime / DAY} days: ${orders.length} orders`);
    }
  });
});
