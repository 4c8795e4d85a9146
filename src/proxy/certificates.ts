import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf } from "#core/assert.ts";
import type { Box } from "#core/box.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import type { Issuer } from "./authority.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { ProxyStore, StoredCertificate } from "./store.ts";
import type { Certificate } from "./table.ts";
import { keyPem } from "./x509.ts";

interface CertificateParts {
  store: ProxyStore;
  box: Box;
  clock: Clock;
  log: Log;
  domain: string;
  issuer: Issuer;
  publish(certificates: Certificate[]): void;
  onChange(app_id: string): void;
}

const NAME = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,62}$/;
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Certificates are renewed when less than this is left, or a third of the time of those that are given for less … */
const RENEW_MS = 30 * DAY;
/** … and a try that failed is repeated after this. No name is asked for more often. */
const RETRY_MS = 15 * MINUTE;

/** Host names of apps and their certificates: brought by their owners, or got from an authority and renewed. */
export class Certificates {
  readonly #parts: CertificateParts;
  readonly #timers: Timers;
  #all: StoredCertificate[] = [];
  /** Names are got one after the other … */
  #line: Promise<void> = Promise.resolve();
  /** … and these are in line. */
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
    this.#timers.close();
  }

  /** Names that lead to the app. */
  hostnames(app_id: string): string[] {
    return this.#all.filter((one) => one.app_id === app_id).map(({ hostname }) => hostname);
  }

  async list(app_id: string): Promise<StoredCertificate[]> {
    return await this.#parts.store.certificates(app_id);
  }

  async get(app_id: string, hostname: string): Promise<StoredCertificate> {
    const found = (await this.list(app_id)).find((one) => one.hostname === hostname.toLowerCase());
    return found ?? fail("not_found", `the app has no certificate for ${JSON.stringify(hostname)}`);
  }

  /** A certificate of one's own. It replaces the one there was for the name. */
  async addCustom(
    app_id: string,
    wish: { hostname: string; fullchain: string; private_key: string },
  ): Promise<StoredCertificate> {
    const hostname = this.#name(wish.hostname);
    const leaf = checkPair(hostname, wish.fullchain, wish.private_key, this.#parts.clock.now());
    return await this.#put({
      ...this.#blank(app_id, hostname, "custom"),
      state: "ready",
      chain: wish.fullchain,
      key: this.#parts.box.seal(`certificate:${hostname}`, wish.private_key),
      expires_at: Date.parse(leaf.validTo),
    });
  }

  /** Asks the authority for one; it is there a while later. */
  async addAcme(app_id: string, name: string): Promise<StoredCertificate> {
    const hostname = this.#name(name);
    if (!this.#parts.issuer.configured)
      fail("no_certificate_authority", `no certificate can be got for ${hostname}: there is no certificate authority`, {
        hint: "set HANGAR_ACME_DIRECTORY to the directory of one (ACME), or bring your own: hangar certs add … --chain FILE --key FILE",
      });
    if (hostname.startsWith("*."))
      wrongName(
        "an authority gives certificates for *. names only by dns-01, which is not spoken here; bring your own",
      );
    const added = await this.#put(this.#blank(app_id, hostname, "acme"));
    this.#get(hostname);
    return added;
  }

  /** Tries again now, for one that waits. */
  async check(app_id: string, hostname: string): Promise<StoredCertificate> {
    const one = await this.get(app_id, hostname);
    if (one.kind === "acme" && (one.state !== "ready" || one.problem !== null)) this.#get(one.hostname);
    return one;
  }

  async remove(app_id: string, hostname: string, kind?: "acme" | "custom"): Promise<void> {
    const one = await this.get(app_id, hostname);
    if (kind && one.kind !== kind) fail("not_found", `the certificate for ${hostname} is ${one.kind}, not ${kind}`);
    await this.#parts.store.deleteCertificate(app_id, one.hostname);
    this.#timers.cancel(one.hostname);
    await this.#reload();
    this.#parts.onChange(app_id);
  }

  #name(given: string): string {
    const hostname = given.toLowerCase().replace(/\.$/, "");
    if (!NAME.test(hostname) || hostname.length > 253)
      wrongName(`${JSON.stringify(given.slice(0, 300))} is not a host name`);
    const { domain } = this.#parts;
    if (hostname.endsWith(`.${domain}`)) wrongName(`names below ${domain} belong to the apps they name`);
    return hostname;
  }

  #blank(app_id: string, hostname: string, kind: "acme" | "custom"): StoredCertificate {
    const now = this.#parts.clock.now();
    const times = { created_at: now, updated_at: now, expires_at: null };
    return { hostname, app_id, kind, state: "pending", chain: null, key: null, problem: null, ...times };
  }

  async #put(certificate: StoredCertificate): Promise<StoredCertificate> {
    const { store, onChange } = this.#parts;
    const { app_id, hostname } = certificate;
    const { certificates_per_app } = PROXY_LIMITS;
    const result = await store.insertCertificate(certificate, certificates_per_app);
    if (result === "limit")
      fail("limit_reached", `an app has at most ${certificates_per_app} certificates (limit certificates_per_app)`);
    if (result === "no_app") fail("not_found", "the app was deleted meanwhile");
    if (result === "taken" && !(await store.putCertificate(certificate))) {
      fail("name_taken", `another app has the host name ${hostname}`);
    }
    await this.#reload();
    onChange(app_id);
    return await this.get(app_id, hostname);
  }

  /** Puts in force what there is. */
  async #reload(): Promise<void> {
    const { store, box, publish } = this.#parts;
    this.#all = await store.certificates();
    publish(
      this.#all.flatMap(({ hostname, chain, key }) =>
        chain && key
          ? [{ hostnames: [hostname], chain, key: box.open(`certificate:${hostname}`, key).toString() }]
          : [],
      ),
    );
  }

  #plan(certificate: StoredCertificate, at_least_ms = 0): void {
    const { hostname, kind } = certificate;
    if (kind !== "acme") return;
    const left = dueAt(certificate) - this.#parts.clock.now();
    this.#timers.set(hostname, Math.max(at_least_ms, left), () => this.#get(hostname));
  }

  #get(hostname: string): void {
    const { log } = this.#parts;
    if (this.#waiting.has(hostname)) return;
    this.#waiting.add(hostname);
    this.#line = this.#line
      .then(() => {
        this.#waiting.delete(hostname);
        return this.#issue(hostname);
      })
      .catch((error: unknown) => {
        log.warn({ hostname, error }, "what came of a certificate could not be kept");
        this.#timers.set(hostname, RETRY_MS, () => this.#get(hostname));
      });
  }

  async #issue(hostname: string): Promise<void> {
    const { store, clock, log, box, issuer, onChange } = this.#parts;
    const before = this.#all.find((one) => one.hostname === hostname);
    // It may have been got while this waited.
    if (before?.kind !== "acme" || dueAt(before) > clock.now()) return;
    let after: StoredCertificate;
    try {
      const { chain, key } = await issuer.order(hostname);
      const expires_at = Date.parse(new X509Certificate(chain).validTo);
      const sealed = box.seal(`certificate:${hostname}`, keyPem(key));
      after = { ...before, state: "ready", chain, key: sealed, problem: null, expires_at, updated_at: clock.now() };
    } catch (thrown) {
      // A certificate that could not be renewed is good until it ends.
      log.warn({ hostname, problem: messageOf(thrown) }, "no certificate could be got");
      const state = before.chain ? before.state : "failed";
      after = { ...before, state, problem: messageOf(thrown).slice(0, 500), updated_at: clock.now() };
    }
    // Removed meanwhile.
    if (!(await store.putCertificate(after))) return;
    await this.#reload();
    onChange(after.app_id);
    this.#plan(after, RETRY_MS);
  }
}

/** When it is time to get one, or the next. */
function dueAt({ state, chain }: StoredCertificate): number {
  if (state !== "ready" || chain === null) return 0;
  const { validFrom, validTo } = new X509Certificate(chain);
  const until = Date.parse(validTo);
  return until - Math.min(RENEW_MS, (until - Date.parse(validFrom)) / 3);
}

function wrongName(problem: string): never {
  fail("invalid_name", problem, { details: [{ path: "body.hostname", problem }] });
}

/** The leaf, when chain and key belong together and cover the name. */
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
  const asked = hostname.replace(/^\*\./, "any.");
  if (!leaf.checkHost(asked)) wrong("body.fullchain", `does not cover ${hostname}`);
  if (Date.parse(leaf.validTo) < now) wrong("body.fullchain", `ran out on ${leaf.validTo}`);
  return leaf;
}
