import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { Timers } from "#core/timers.ts";
import type { Issuer } from "./authority.ts";
import {
  checkHostName,
  hostNameProblem,
  isCovered,
  type OwnershipRecord,
  type OwnNames,
  ownershipProblem,
  ownershipRecord,
  reservedNames,
  type TxtLookup,
  wrongName,
} from "./host-names.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { ProxyStore, StoredCertificate } from "./store.ts";
import type { Certificate } from "./table.ts";
import { keyPem } from "./x509.ts";

interface CertificateParts {
  store: ProxyStore;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  own: OwnNames;
  issuer: Issuer;
  lookup: TxtLookup;
  publish(certificates: Certificate[]): void;
  onChange(app_id: string): void;
  /** Names this process among those on one database. */
  runner: string;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Certificates are renewed when less than this, or a third of a shorter lifetime, is left … */
const RENEW_MS = 30 * DAY;
/** … and failed attempts are repeated after this. No name is ordered more often. */
const RETRY_MS = 15 * MINUTE;

/** Host names of an app, and names below its wildcards that belong to others. */
export interface AppNames {
  hostnames: string[];
  reserved: string[];
}

/** Whether an app's ownership of a name is verified, and the record that would prove it. */
export interface Ownership extends OwnershipRecord {
  proved: boolean;
  /** Why it is not verified; undefined when it is. */
  problem: string | undefined;
}

/**
 * Manages host names of apps and their certificates, uploaded or ordered from an authority and renewed. Any app may
 * claim a name; it is routed to the one that has proved ownership: by a TXT record, by a certificate of the authority,
 * or because the operator claimed it.
 */
export class Certificates {
  readonly #parts: CertificateParts;
  readonly #timers: Timers;
  #all: StoredCertificate[] = [];
  #closed = false;
  /** Certificates are ordered one after the other … */
  #line: Promise<void> = Promise.resolve();
  /** … and these are queued. */
  readonly #waiting = new Set<string>();

  constructor(parts: CertificateParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  async start(): Promise<void> {
    await this.#reload();
    for (const one of this.#all) this.#plan(one);
  }

  close(): void {
    this.#closed = true;
    this.#timers.close();
  }

  names(app_id: string): AppNames {
    const own = this.#held().filter((one) => one.app_id === app_id);
    const hostnames = own.map(({ hostname }) => hostname);
    return { hostnames, reserved: this.#reserved(own[0]?.org_id ?? "", hostnames) };
  }

  async list(app_id: string): Promise<StoredCertificate[]> {
    return await this.#parts.store.certificates(app_id);
  }

  async get(app_id: string, hostname: string): Promise<StoredCertificate> {
    const found = (await this.list(app_id)).find((one) => one.hostname === hostname.toLowerCase());
    return found ?? fail("not_found", `the app has no certificate for ${JSON.stringify(hostname)}`);
  }

  ownership({ app_id, org_id, hostname, proved_at }: StoredCertificate, looked?: string): Ownership {
    const record = ownershipRecord(this.#parts.sealer, org_id, hostname);
    const holder = this.#held().find((one) => one.hostname === hostname && one.app_id !== app_id);
    const how = `it is not proved that the name is yours: set the TXT record ${record.name} to ${record.value}, then check again`;
    const problem = holder ? "another app has proved that it has the name" : (looked ?? how);
    return { ...record, proved: proved_at !== null, problem: proved_at === null ? problem : undefined };
  }

  /** Adds an uploaded certificate, replacing the previous one of the name. */
  async addCustom(
    app_id: string,
    input: { hostname: string; fullchain: string; private_key: string },
    { trusted }: { trusted: boolean },
  ): Promise<StoredCertificate> {
    const hostname = checkHostName(input.hostname, this.#parts.own);
    const leaf = checkPair(hostname, input.fullchain, input.private_key, this.#parts.clock.now());
    const certificate = {
      ...this.#blank(app_id, hostname, "custom"),
      state: "ready" as const,
      chain: input.fullchain,
      key: this.#parts.sealer.seal(`certificate:${hostname}`, input.private_key),
      expires_at: Date.parse(leaf.validTo),
    };
    return await this.#put(certificate, trusted);
  }

  /** Queues an order at the authority. */
  async addAcme(app_id: string, name: string, { trusted }: { trusted: boolean }): Promise<StoredCertificate> {
    const hostname = checkHostName(name, this.#parts.own);
    if (!this.#parts.issuer.configured)
      fail("no_certificate_authority", `no certificate can be got for ${hostname}: there is no certificate authority`, {
        hint: "set HANGAR_ACME_DIRECTORY to the directory of one (ACME), or bring your own: hangar certs add … --chain FILE --key FILE",
      });
    if (hostname.startsWith("*.") && !this.#parts.issuer.wildcards)
      wrongName(
        "an authority gives certificates for *. names only by dns-01: set HANGAR_ACME_DNS_HOOK to a program that sets TXT records, or bring your own certificate",
      );
    const added = await this.#put(this.#blank(app_id, hostname, "acme"), trusted);
    this.#get(added);
    return added;
  }

  /** Checks the ownership proof of an unverified name, and orders its certificate now. */
  async check(app_id: string, hostname: string): Promise<{ certificate: StoredCertificate; ownership: Ownership }> {
    const before = await this.get(app_id, hostname);
    const looked = before.proved_at === null ? await this.#lookForProof(before) : undefined;
    const certificate = await this.get(app_id, hostname);
    if (certificate.kind === "acme" && (certificate.state !== "ready" || certificate.problem !== null))
      this.#get(certificate);
    return { certificate, ownership: this.ownership(certificate, looked) };
  }

  async #lookForProof(one: StoredCertificate): Promise<string | undefined> {
    const { store, sealer, clock, lookup } = this.#parts;
    const problem = await ownershipProblem(ownershipRecord(sealer, one.org_id, one.hostname), lookup);
    if (problem !== undefined) return problem;
    await store.proveHostname(one.app_id, one.hostname, clock.now());
    await this.#changed(one);
    return undefined;
  }

  async remove(app_id: string, hostname: string, kind?: "acme" | "custom"): Promise<void> {
    const one = await this.get(app_id, hostname);
    if (kind && one.kind !== kind) fail("not_found", `the certificate for ${hostname} is ${one.kind}, not ${kind}`);
    await this.#parts.store.deleteCertificate(app_id, one.hostname);
    this.#timers.cancel(keyOf(one));
    await this.#changed(one);
  }

  /** Routed names. Names that have since become the platform's own are not routed to apps. */
  #held(): StoredCertificate[] {
    return this.#all.filter(
      ({ proved_at, hostname }) => proved_at !== null && hostNameProblem(hostname, this.#parts.own) === undefined,
    );
  }

  #reserved(org_id: string, hostnames: readonly string[]): string[] {
    const wildcards = hostnames.filter((name) => name.startsWith("*."));
    return reservedNames(org_id, wildcards, this.#held(), this.#parts.own);
  }

  #blank(app_id: string, hostname: string, kind: "acme" | "custom"): StoredCertificate {
    const now = this.#parts.clock.now();
    const times = { created_at: now, updated_at: now, expires_at: null };
    const nothing = { org_id: "", chain: null, key: null, problem: null, proved_at: null };
    return { hostname, app_id, kind, state: "pending", ...nothing, ...times };
  }

  async #put(certificate: StoredCertificate, trusted: boolean): Promise<StoredCertificate> {
    const { store, clock } = this.#parts;
    const { app_id, hostname } = certificate;
    const { certificates_per_app } = PROXY_LIMITS;
    const result = await store.insertCertificate(certificate, certificates_per_app);
    if (result === "limit")
      fail("limit_reached", `an app has at most ${certificates_per_app} certificates (limit certificates_per_app)`);
    if (result === "no_app") fail("not_found", "the app was deleted in the meantime");
    const stored = result === "inserted" || (await store.putCertificate(certificate));
    if (!stored || (trusted && !(await store.proveHostname(app_id, hostname, clock.now()))))
      fail("name_taken", `another app has the host name ${hostname}`);
    await this.#changed(certificate);
    return await this.get(app_id, hostname);
  }

  /** Updates the app, and other apps whose wildcards gain or lose this name. */
  async #changed({ app_id, hostname }: StoredCertificate): Promise<void> {
    await this.#reload();
    const wildcards = this.#held().filter((one) => isCovered(hostname, one.hostname));
    for (const id of new Set([app_id, ...wildcards.map((one) => one.app_id)])) this.#parts.onChange(id);
  }

  /** Sends the current certificates to the workers. */
  async #reload(): Promise<void> {
    const { store, sealer, publish } = this.#parts;
    this.#all = await store.certificates();
    publish(
      this.#held().flatMap(({ hostname, org_id, chain, key }) => {
        if (!chain || !key) return [];
        const names = { hostnames: [hostname], reserved: this.#reserved(org_id, [hostname]) };
        return [{ ...names, chain, key: sealer.open(`certificate:${hostname}`, key).toString() }];
      }),
    );
  }

  #plan(certificate: StoredCertificate, at_least_ms = 0): void {
    if (certificate.kind !== "acme") return;
    const left = dueAt(certificate) - this.#parts.clock.now();
    this.#timers.set(keyOf(certificate), Math.max(at_least_ms, left), () => this.#get(certificate));
  }

  #get(claim: Claim): void {
    const { log } = this.#parts;
    const key = keyOf(claim);
    if (this.#waiting.has(key)) return;
    this.#waiting.add(key);
    this.#line = this.#line
      .then(() => {
        this.#waiting.delete(key);
        return this.#issueAlone(claim);
      })
      .catch((error: unknown) => {
        log.warn({ hostname: claim.hostname, error }, "the result of a certificate order could not be stored");
        this.#timers.set(key, RETRY_MS, () => this.#get(claim));
      });
  }

  /**
   * Why a certificate of the authority would prove nothing: its http-01 request reaches this platform, whichever app
   * claims the name.
   */
  #unprovable({ org_id, app_id, hostname, proved_at }: StoredCertificate): string | undefined {
    if (proved_at !== null) return undefined;
    const others = this.#held().filter((one) => one.app_id !== app_id);
    if (others.some((one) => one.hostname === hostname)) return "another app has proved that it has the name";
    const wildcard = others.find((one) => one.org_id !== org_id && isCovered(hostname, one.hostname));
    return wildcard && `another organization has ${wildcard.hostname}: the name needs its TXT record first`;
  }

  /**
   * Of several processes one orders: a name's challenge is one record, and authorities count orders. The claim of a
   * process that died lasts until its order can no longer be in progress.
   */
  async #issueAlone(claim: Claim): Promise<void> {
    const { store, clock, runner } = this.#parts;
    const name = claim.hostname.replace(/^\*\./, "");
    const now = clock.now();
    const until = now + PROXY_LIMITS.acme_order_ms + 2 * PROXY_LIMITS.acme_hook_ms;
    if (!(await store.claimOrder(name, { runner, now, until }))) {
      this.#timers.set(keyOf(claim), PROXY_LIMITS.acme_look_ms, () => this.#get(claim));
      return;
    }
    try {
      // Another process may have obtained it since the last read.
      await this.#reload();
      await this.#issue(claim);
    } finally {
      await store.releaseOrder(name, runner);
    }
  }

  async #issue(claim: Claim): Promise<void> {
    const { store, clock, log, sealer, issuer } = this.#parts;
    const { hostname } = claim;
    const before = this.#all.find((one) => keyOf(one) === keyOf(claim));
    if (before?.kind !== "acme") return;
    // It may have been obtained while this waited.
    if (dueAt(before) > clock.now()) return this.#plan(before);
    // With dns-01 the operator's program answers, not the app that claims the name: that proves nothing about the app.
    if (hostname.startsWith("*.") && before.proved_at === null) return;
    let after: StoredCertificate;
    try {
      const { chain, key } = await this.#order(before, issuer);
      const expires_at = Date.parse(new X509Certificate(chain).validTo);
      const sealed = sealer.seal(`certificate:${hostname}`, keyPem(key));
      after = { ...before, state: "ready", chain, key: sealed, problem: null, expires_at, updated_at: clock.now() };
    } catch (thrown) {
      // The next start orders it again.
      if (this.#closed) return;
      // A certificate that could not be renewed stays valid until it expires.
      log.warn({ hostname, problem: messageOf(thrown) }, "no certificate could be got");
      const state = before.chain ? before.state : "failed";
      after = { ...before, state, problem: messageOf(thrown).slice(0, 500), updated_at: clock.now() };
    }
    // Deleted meanwhile.
    if (!(await store.putCertificate(after))) return;
    await this.#changed(after);
    this.#plan(after, RETRY_MS);
  }

  /** A certificate issued by an authority proves ownership of the name. */
  async #order(claim: StoredCertificate, issuer: Issuer): ReturnType<Issuer["order"]> {
    const { store, clock } = this.#parts;
    const refuse = (problem: string | undefined): void => {
      if (problem !== undefined) throw new Error(problem);
    };
    refuse(this.#unprovable(claim));
    const got = await issuer.order(claim.hostname);
    // Also considers what others proved during the order.
    refuse(this.#unprovable(claim));
    if (!(await store.proveHostname(claim.app_id, claim.hostname, clock.now())))
      refuse("another app has proved that it has the name");
    return got;
  }
}

/** One app's claim of a name. */
type Claim = Pick<StoredCertificate, "app_id" | "hostname">;
const keyOf = ({ app_id, hostname }: Claim): string => `${app_id} ${hostname}`;

/** When to order a certificate or its renewal. */
function dueAt({ state, chain }: StoredCertificate): number {
  if (state !== "ready" || chain === null) return 0;
  const { validFrom, validTo } = new X509Certificate(chain);
  const until = Date.parse(validTo);
  return until - Math.min(RENEW_MS, (until - Date.parse(validFrom)) / 3);
}

/** Returns the leaf certificate, if chain and key match and cover the name. */
function checkPair(hostname: string, chain: string, key: string, now: number): X509Certificate {
  const wrong = (path: string, problem: string): never =>
    fail("invalid_request", `${path} ${problem}`, { details: [{ path, problem }] });
  let leaf: X509Certificate;
  let secret: KeyObject;
  try {
    leaf = new X509Certificate(chain);
  } catch {
    return wrong("body.fullchain", "is not a certificate in PEM");
  }
  try {
    secret = createPrivateKey(key);
  } catch {
    return wrong("body.private_key", "is not a private key in PEM without a password");
  }
  if (!leaf.checkPrivateKey(secret))
    wrong("body.private_key", "is not the key of the first certificate in body.fullchain");
  try {
    createSecureContext({ cert: chain, key });
  } catch (thrown) {
    wrong("body.fullchain", `cannot be used for TLS with this key (${messageOf(thrown)})`);
  }
  const probe = hostname.replace(/^\*\./, "any.");
  if (!leaf.checkHost(probe)) wrong("body.fullchain", `does not cover ${hostname}`);
  if (Date.parse(leaf.validTo) < now) wrong("body.fullchain", `ran out on ${leaf.validTo}`);
  return leaf;
}
