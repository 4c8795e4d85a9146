import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import type { Issuer } from "./authority.ts";
import { Certificates } from "./certificates.ts";
import type { ProxyStore, StoredCertificate } from "./store.ts";
import type { Certificate } from "./table.ts";
import { selfSigned } from "./x509.ts";

const TRUSTED = { trusted: true };
const CLAIMED = { trusted: false };
const HOUR = 3600_000;
const MINUTE = 60_000;
const DAY = 24 * HOUR;

const NOBODY: Issuer = {
  configured: true,
  wildcards: true,
  order: async () => {
    throw new Error("no authority");
  },
};

/** Whose apps they are. */
const ORGS: Record<string, string> = { a1: "o1", a2: "o1", b1: "o2" };

/** Certificates in memory; `fail` makes the next write fail. TXT records are in `txt`. */
function aRoom(issuer = NOBODY) {
  const rows = new Map<string, StoredCertificate>();
  const broken = { fail: false };
  const txt = new Map<string, string[]>();
  const published: Certificate[][] = [];
  const changed: string[] = [];
  /** Which runner has the orders of a name. */
  const ordering = new Map<string, string>();
  const key = ({ app_id, hostname }: StoredCertificate): string => `${app_id} ${hostname}`;
  const put = async (one: StoredCertificate): Promise<boolean> => {
    if (broken.fail) throw new Error("the store is away");
    const proved_at = rows.get(key(one))?.proved_at ?? null;
    return Boolean(rows.set(key(one), { ...one, org_id: ORGS[one.app_id] ?? "", proved_at }));
  };
  const isHeld = (hostname: string, app_id: string): boolean =>
    [...rows.values()].some((one) => one.hostname === hostname && one.app_id !== app_id && one.proved_at !== null);
  const store: Partial<ProxyStore> = {
    certificates: async (app_id) => [...rows.values()].filter((one) => app_id === undefined || one.app_id === app_id),
    async insertCertificate(one) {
      if (rows.has(key(one)) || isHeld(one.hostname, one.app_id)) return "taken";
      await put(one);
      return "inserted";
    },
    putCertificate: async (one) => rows.has(key(one)) && (await put(one)),
    async proveHostname(app_id, hostname, at) {
      const one = rows.get(`${app_id} ${hostname}`);
      if (!one || isHeld(hostname, app_id)) return false;
      rows.set(key(one), { ...one, proved_at: at });
      return true;
    },
    deleteCertificate: async (app_id, hostname) => rows.delete(`${app_id} ${hostname}`),
    async claimOrder(name, { runner }) {
      if ((ordering.get(name) ?? runner) !== runner) return false;
      return Boolean(ordering.set(name, runner));
    },
    async releaseOrder(name, runner) {
      if (ordering.get(name) === runner) ordering.delete(name);
    },
  };
  const clock = virtualClock();
  const certificates = new Certificates({
    store: store as ProxyStore,
    sealer: new Sealer(new Uint8Array(32)),
    clock,
    log: silentLog,
    own: { domain: "apps.zone.test", hosts: ["api.platform.example"] },
    issuer,
    lookup: async (name) => txt.get(name) ?? [],
    publish: (all) => void published.push(all),
    onChange: (app_id) => void changed.push(app_id),
    runner: "here",
  });
  const state = (hostname: string): string | undefined => rows.get(`a1 ${hostname}`)?.state;
  return { certificates, clock, rows, broken, txt, published, changed, state, ordering };
}

/** An authority whose certificates are valid for `lifetime`; it responds when `open` resolves. */
function anIssuer(lifetime_ms: number, open: Promise<void> = Promise.resolve()) {
  const orders: number[] = [];
  const issuer: Issuer = {
    configured: true,
    wildcards: true,
    async order(hostname) {
      orders.push(module.clock.now());
      await open;
      const { chain, key } = selfSigned([hostname], module.clock.now(), lifetime_ms);
      return { chain, key: createPrivateKey(key) };
    },
  };
  const module = aRoom(issuer);
  return { ...module, orders };
}

suite("certificates", () => {
  test("of several processes one orders a name and its wildcard; the others use its certificates", async (t) => {
    const { certificates, clock, rows, orders, ordering, state } = anIssuer(90 * DAY);
    t.after(() => certificates.close());
    ordering.set("www.example.com", "elsewhere");
    await certificates.addAcme("a1", "www.example.com", { trusted: true });
    await certificates.addAcme("a1", "*.www.example.com", { trusted: true });
    await clock.advance(10 * MINUTE);
    assert.deepEqual(orders, [], "it is another's to order, and so is what shares its challenge record");
    const { chain } = selfSigned(["www.example.com"], clock.now(), 90 * DAY);
    const got = rows.get("a1 www.example.com");
    assert.ok(got);
    rows.set("a1 www.example.com", { ...got, state: "ready", chain });
    ordering.clear();
    await clock.advance(2 * MINUTE);
    assert.equal(orders.length, 1, "the wildcard alone: the other one has got the name");
    assert.equal(state("*.www.example.com"), "ready");
    assert.equal(ordering.size, 0, "what was claimed is given back");
    await clock.advance(80 * DAY);
    assert.ok(orders.length >= 3, "and both are renewed in time");
  });

  test("a short outage of the store fails one order, not the ones after it", async (t) => {
    const { certificates, clock, state, broken } = aRoom();
    t.after(() => certificates.close());
    await certificates.addAcme("a1", "one.example.com", TRUSTED);
    broken.fail = true;
    await clock.advance(0);
    broken.fail = false;
    await certificates.addAcme("a1", "two.example.com", TRUSTED);
    await clock.advance(0);
    assert.deepEqual([state("one.example.com"), state("two.example.com")], ["pending", "failed"]);
    await clock.advance(20 * 60_000);
    assert.equal(state("one.example.com"), "failed", "it was tried again");
  });

  test("a certificate chain that no TLS server could use is refused at upload", async () => {
    const { certificates, clock } = aRoom();
    const hostname = "own.example.com";
    const { chain, key: private_key } = selfSigned([hostname], clock.now());
    const torn = `${chain}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`;
    const wrong = certificates.addCustom("a1", { hostname, fullchain: torn, private_key }, TRUSTED);
    await assert.rejects(wrong, { code: "invalid_request", message: /cannot be used for TLS/ });
    const good = await certificates.addCustom("a1", { hostname, fullchain: chain, private_key }, TRUSTED);
    assert.equal(good.state, "ready");
  });

  test("a certificate is refused at once when no certificate authority is configured", async (t) => {
    const { certificates, rows } = aRoom({ ...NOBODY, configured: false });
    t.after(() => certificates.close());
    await assert.rejects(certificates.addAcme("a1", "one.example.com", TRUSTED), { code: "no_certificate_authority" });
    assert.equal(rows.size, 0);
  });

  test("a certificate requested many times is ordered once", async (t) => {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const { certificates, clock, orders } = anIssuer(90 * DAY, open);
    t.after(() => certificates.close());
    await certificates.addAcme("a1", "one.example.com", TRUSTED);
    for (let n = 0; n < 100; n++) await certificates.check("a1", "one.example.com");
    resolve();
    await clock.advance(DAY);
    assert.equal((await certificates.get("a1", "one.example.com")).state, "ready");
    assert.equal(orders.length, 1);
  });

  test("certificates are renewed before they expire, short-lived ones too, and never in a tight loop", async (t) => {
    for (const { lifetime, days, most } of [
      { lifetime: 90 * DAY, days: 90, most: 2 },
      { lifetime: 6 * DAY, days: 90, most: 25 },
      { lifetime: DAY, days: 90, most: 280 },
      // The host's clock is wrong: every issued certificate has already expired.
      { lifetime: -HOUR, days: 1, most: 4 * 24 + 1 },
    ]) {
      const { certificates, clock, orders } = anIssuer(lifetime);
      t.after(() => certificates.close());
      await certificates.addAcme("a1", "one.example.com", TRUSTED);
      for (let passed = 0; passed < days * DAY; passed += 6 * HOUR) {
        await clock.advance(6 * HOUR);
        const { expires_at } = await certificates.get("a1", "one.example.com");
        assert.ok(lifetime < 0 || (expires_at ?? 0) > clock.now(), `${lifetime / DAY} days: never run out`);
      }
      assert.ok(orders.length > 1 && orders.length <= most, `${lifetime / DAY} days: ${orders.length} orders`);
    }
  });
});

suite("host name ownership", () => {
  /** Uploads a self-made certificate, as anyone can. */
  const bring = (module: ReturnType<typeof aRoom>, app_id: string, hostname: string, trust = CLAIMED) => {
    const { chain: fullchain, key: private_key } = selfSigned([hostname], module.clock.now());
    return module.certificates.addCustom(app_id, { hostname, fullchain, private_key }, trust);
  };
  const leadsTo = ({ certificates }: ReturnType<typeof aRoom>, hostname: string): string[] =>
    Object.keys(ORGS).filter((app_id) => certificates.names(app_id).hostnames.includes(hostname));

  test("IP addresses and the platform's own names belong to no app, nor to a wildcard", async () => {
    const module = aRoom();
    const refused = `127.0.0.1 1.2.3.4 0x7f.0x1 example.0x7f 10.1 *.0.0.1 *.1 apps.zone.test x.apps.zone.test *.apps.zone.test *.test
      api.platform.example API.Platform.Example. web.localhost *.localhost app.internal printer.local localhost`;
    for (const hostname of refused.split(/\s+/))
      await assert.rejects(bring(module, "a1", hostname, TRUSTED), { code: "invalid_name" }, hostname);
    await bring(module, "a1", "*.platform.example", TRUSTED);
    await bring(module, "a1", "*.zone.test", TRUSTED);
    assert.deepEqual(module.certificates.names("a1").reserved, ["apps.zone.test", "api.platform.example"]);
  });

  test("an unverified host name has no route and no certificate until its TXT record exists", async () => {
    const module = aRoom();
    await bring(module, "b1", "www.victim.example");
    assert.deepEqual([leadsTo(module, "www.victim.example"), module.published.at(-1)], [[], []]);
    const first = await module.certificates.check("b1", "www.victim.example");
    assert.match(first.ownership.problem ?? "", /no TXT record yet: set the TXT record _hangar-ownership\.www/);
    const { name, value } = first.ownership;
    module.txt.set(name, ["v=spf1 -all", `${value}x`]);
    assert.match(
      (await module.certificates.check("b1", "www.victim.example")).ownership.problem ?? "",
      /another value/,
    );
    module.txt.set(name, ["v=spf1 -all", value]);
    assert.equal((await module.certificates.check("b1", "www.victim.example")).ownership.proved, true);
    assert.deepEqual([leadsTo(module, "www.victim.example"), module.published.at(-1)?.length], [["b1"], 1]);
  });

  test("an unverified claim blocks no app, and one organization's record verifies nothing for another", async () => {
    const module = aRoom();
    await bring(module, "b1", "www.victim.example");
    const squatter = module.certificates.ownership(await module.certificates.get("b1", "www.victim.example"));
    await bring(module, "a1", "www.victim.example");
    const owner = module.certificates.ownership(await module.certificates.get("a1", "www.victim.example"));
    assert.equal(owner.name, squatter.name);
    assert.notEqual(owner.value, squatter.value);
    module.txt.set(owner.name, [owner.value]);
    assert.equal((await module.certificates.check("b1", "www.victim.example")).ownership.proved, false);
    assert.equal((await module.certificates.check("a1", "www.victim.example")).ownership.proved, true);
    module.txt.set(owner.name, [owner.value, squatter.value]);
    const late = await module.certificates.check("b1", "www.victim.example");
    assert.match(late.ownership.problem ?? "", /another app has proved/);
    assert.deepEqual(leadsTo(module, "www.victim.example"), ["a1"]);
    await assert.rejects(bring(module, "a2", "www.victim.example", TRUSTED), { code: "name_taken" });
  });

  test("the TXT record of a name does not verify its wildcard", async () => {
    const module = aRoom();
    for (const hostname of ["victim.example", "*.victim.example"]) await bring(module, "b1", hostname);
    const { name, value } = module.certificates.ownership(await module.certificates.get("b1", "victim.example"));
    module.txt.set(name, [value]);
    assert.equal((await module.certificates.check("b1", "victim.example")).ownership.proved, true);
    assert.equal((await module.certificates.check("b1", "*.victim.example")).ownership.proved, false);
  });

  test("a wildcard excludes names that another organization has verified, in routes and certificates", async () => {
    const module = aRoom();
    await bring(module, "a1", "*.hosting.example", TRUSTED);
    await bring(module, "a2", "own.hosting.example", TRUSTED);
    assert.deepEqual(
      module.certificates.names("a1").reserved,
      [],
      "names of its own organization are served as before",
    );
    module.changed.length = 0;
    await bring(module, "b1", "bob.hosting.example", TRUSTED);
    assert.deepEqual(module.certificates.names("a1").reserved, ["bob.hosting.example"]);
    assert.ok(module.changed.includes("a1"), "the wildcard's app is updated");
    const wildcard = module.published.at(-1)?.find(({ hostnames }) => hostnames[0] === "*.hosting.example");
    assert.deepEqual(wildcard?.reserved, ["bob.hosting.example"]);
    await module.certificates.remove("b1", "bob.hosting.example");
    assert.deepEqual(module.certificates.names("a1").reserved, []);
  });

  test("an issued certificate verifies a name, unless another organization's wildcard covers it", async (t) => {
    const { ...module } = anIssuer(90 * DAY);
    t.after(() => module.certificates.close());
    await module.certificates.addAcme("b1", "shop.example", CLAIMED);
    await module.clock.advance(0);
    assert.deepEqual(leadsTo(module, "shop.example"), ["b1"]);
    await bring(module, "a1", "*.victim.example", TRUSTED);
    const before = module.orders.length;
    await module.certificates.addAcme("b1", "mail.victim.example", CLAIMED);
    await module.clock.advance(0);
    assert.deepEqual([leadsTo(module, "mail.victim.example"), module.orders.length], [[], before]);
    const refused = await module.certificates.get("b1", "mail.victim.example");
    assert.match(refused.problem ?? "", /another organization has \*\.victim\.example/);
    const { name, value } = module.certificates.ownership(refused);
    module.txt.set(name, [value]);
    await module.certificates.check("b1", "mail.victim.example");
    await module.clock.advance(0);
    assert.deepEqual([leadsTo(module, "mail.victim.example"), module.orders.length], [["b1"], before + 1]);
  });

  test("a wildcard certificate is ordered only after verification, with dns-01 by the operator's hook", async (t) => {
    const { ...module } = anIssuer(90 * DAY);
    t.after(() => module.certificates.close());
    await module.certificates.addAcme("b1", "*.victim.example", CLAIMED);
    await module.clock.advance(DAY);
    await module.certificates.check("b1", "*.victim.example");
    await module.clock.advance(DAY);
    assert.deepEqual([leadsTo(module, "*.victim.example"), module.orders.length], [[], 0]);
    const claim = await module.certificates.get("b1", "*.victim.example");
    assert.deepEqual([claim.state, claim.problem], ["pending", null]);
    const { name, value } = module.certificates.ownership(claim);
    module.txt.set(name, [value]);
    await module.certificates.check("b1", "*.victim.example");
    await module.clock.advance(0);
    assert.deepEqual([leadsTo(module, "*.victim.example"), module.orders.length], [["b1"], 1]);
    await module.certificates.addAcme("a1", "*.operator.example", TRUSTED);
    await module.clock.advance(0);
    assert.deepEqual([leadsTo(module, "*.operator.example"), module.orders.length], [["a1"], 2]);
  });

  test("a wildcard is refused at once where no DNS hook is configured", async (t) => {
    const { certificates, rows } = aRoom({ ...NOBODY, wildcards: false });
    t.after(() => certificates.close());
    const refused = certificates.addAcme("a1", "*.example.com", TRUSTED);
    await assert.rejects(refused, { code: "invalid_name", message: /HANGAR_ACME_DNS_HOOK/ });
    assert.equal(rows.size, 0);
  });
});
