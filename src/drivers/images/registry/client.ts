/**
 * A client for one repository of a registry, by the OCI distribution protocol: requests, authentication and errors.
 * Retries are in `retry.ts`, pulls in `pull.ts`.
 */
import type { RequestInit, Response } from "undici";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { AddressRefused } from "#core/public-addresses.ts";
import type { ImageLimits } from "../limits.ts";
import { facts, inWords, type Reference } from "../reference.ts";
import { basic, type Credentials } from "./credentials.ts";
import { isLoopback, originOf, type Reach } from "./reach.ts";

export interface RegistryParts {
  clock: Clock;
  limits: ImageLimits;
  reach: Reach;
  credentials: Credentials | undefined;
}

/** A temporary failure: the registry was overloaded, broken or unreachable. */
export class Transient extends Error {
  override readonly name = "Transient";
  readonly retry_after_ms: number | undefined;
  /** Unreachable: an immediate retry is pointless. */
  readonly is_unreachable: boolean;

  constructor(message: string, options: { retry_after_ms?: number | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retry_after_ms = options.retry_after_ms;
    this.is_unreachable = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|bad port|CERT/.test(message);
  }
}

export interface RegistryRequest {
  /** Under `/v2/<repository>/`. */
  path: string;
  accept?: string;
  /** Offset of the first byte. */
  offset?: number;
}

export class Registry {
  readonly #reference: Reference;
  readonly #parts: RegistryParts;
  readonly #origin: string;
  #authorization: { value: string; until: number } | undefined;

  constructor(reference: Reference, parts: RegistryParts) {
    this.#reference = reference;
    this.#parts = parts;
    this.#origin = originOf(reference.registry);
  }

  /** Returns a successful response. Fails with `Transient` or with an API error. */
  async get(request: RegistryRequest, signal: AbortSignal): Promise<Response> {
    const first = await this.#send(request, signal);
    if (first.response.status !== 401) return await this.#judge(first.response);
    const challenge = first.response.headers.get("www-authenticate") ?? "";
    await first.response.body?.cancel();
    // A redirect target may not choose where the registry's credentials are sent.
    if (first.origin !== this.#origin) this.#denied(401);
    this.#authorization = await this.#authorize(challenge, signal);
    return await this.#judge((await this.#send(request, signal)).response);
  }

  async #send(
    { path, accept, offset }: RegistryRequest,
    signal: AbortSignal,
  ): Promise<{ response: Response; origin: string }> {
    const { clock, limits } = this.#parts;
    let url = new URL(`/v2/${this.#reference.repository}/${path}`, this.#origin);
    for (let hop = 0; hop <= limits.redirects; hop++) {
      const { origin } = url;
      const known =
        this.#authorization && this.#authorization.until > clock.now() ? this.#authorization.value : undefined;
      const headers = {
        "accept-encoding": "identity",
        ...(accept ? { accept } : {}),
        ...(offset ? { range: `bytes=${offset}-` } : {}),
        // Other hosts get the request without credentials.
        ...(origin === this.#origin && known ? { authorization: known } : {}),
      };
      const response = await this.#fetch(url, { headers, redirect: "manual" }, signal);
      if (![301, 302, 303, 307, 308].includes(response.status)) return { response, origin };
      await response.body?.cancel();
      url = this.#target(response.headers.get("location") ?? "", url);
    }
    throw new Transient(`it sends us from one address to the next (limit redirects is ${limits.redirects})`);
  }

  /** Validates a redirect: HTTPS, or loopback for a registry on loopback. */
  #target(location: string, from?: URL): URL {
    const url = URL.parse(location, from?.href) ?? this.#refuse("it sends us to an address that is none");
    if (url.username !== "" || url.password !== "") this.#refuse(`it sends us to ${url.host} with a login of its own`);
    const local = isLoopback(this.#reference.registry) && isLoopback(url.host);
    if (url.protocol === "https:" || (url.protocol === "http:" && local)) return url;
    return this.#refuse(`it sends us to ${url.protocol}//${url.host}, which is not safe to follow`);
  }

  async #fetch(url: URL, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const { clock, limits, reach } = this.#parts;
    const late = new AbortController();
    const waited = new AbortController();
    clock.sleep(limits.answer_ms, waited.signal).then(
      () => late.abort(),
      () => {},
    );
    try {
      return await reach.fetch(url, { ...init, signal: AbortSignal.any([signal, late.signal]) }, this.#origin);
    } catch (thrown) {
      signal.throwIfAborted();
      if ((thrown as Error).cause instanceof AddressRefused) this.#inside(url);
      throw new Transient(late.signal.aborted ? `no answer in ${limits.answer_ms / 1000} s` : why(thrown), {
        cause: thrown,
      });
    } finally {
      waited.abort();
    }
  }

  /** Obtains a token from the registry's token service, or uses basic authentication. */
  async #authorize(challenge: string, signal: AbortSignal): Promise<{ value: string; until: number }> {
    const { credentials } = this.#parts;
    if (/^basic\b/i.test(challenge)) {
      if (!credentials) this.#denied(401);
      return { value: basic(credentials), until: Number.POSITIVE_INFINITY };
    }
    return await this.#token(challenge, signal);
  }

  async #token(challenge: string, signal: AbortSignal): Promise<{ value: string; until: number }> {
    const { credentials, clock, limits } = this.#parts;
    const field = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(challenge)?.[1] ?? "";
    if (!/^bearer\b/i.test(challenge) || !URL.canParse(field("realm"))) this.#denied(401);
    const url = this.#target(field("realm"));
    if (field("service") !== "") url.searchParams.set("service", field("service"));
    // Our own scope, not the registry's: a token is never valid for more than needed.
    url.searchParams.set("scope", `repository:${this.#reference.repository}:pull`);
    const headers = credentials ? { authorization: basic(credentials) } : {};
    const response = await this.#fetch(url, { headers, redirect: "error" }, signal);
    if (response.status >= 500 || response.status === 429) throw busy(response, "its token service");
    if (!response.ok) this.#denied(response.status);
    const body: TokenResponse = await tokenResponse(response, limits.document_bytes).catch(() => ({}));
    const token = body.token ?? body.access_token;
    if (typeof token !== "string" || token === "") this.#refuse("its token service gave no token");
    const lasts = typeof body.expires_in === "number" ? body.expires_in * 1000 : limits.token_ms;
    return { value: `Bearer ${token}`, until: clock.now() + lasts * 0.9 };
  }

  async #judge(response: Response): Promise<Response> {
    if (response.ok) return response;
    await response.body?.cancel();
    const { status } = response;
    if (status === 401 || status === 403) this.#denied(status);
    if (status === 404) this.#missing();
    // Range not satisfiable: the layer is downloaded from the beginning.
    if (status === 416) return response;
    if (status === 429 || status >= 500) throw busy(response, "it");
    return this.#refuse(`it answers ${status}`);
  }

  #denied(status: number): never {
    const reference = this.#reference;
    const known = this.#parts.credentials;
    fail("image_refused", `the registry denied access to the image (${status}): ${inWords(reference)}`, {
      facts: facts(reference),
      hint: known
        ? `check that the login for ${reference.registry} in the file of HANGAR_REGISTRY_CONFIG may read ${reference.repository}, and that this repository exists`
        : `check the name; for a private image log in with \`docker login ${reference.registry}\` and start the platform with HANGAR_REGISTRY_CONFIG=<that config.json>`,
    });
  }

  /** The address is not reported: callers may not learn names of the operator's network. */
  #inside(url: URL): never {
    const reference = this.#reference;
    const itself = url.origin === this.#origin;
    const what = itself
      ? "the registry is not at a public address"
      : `it sends us to ${url.host}, not a public address`;
    const bring = `bring the image along: hangar images import ${reference.given} PATH`;
    // The setting opens a host only to registries that are listed themselves, so for others there is nothing to add.
    const allow = itself || this.#parts.reach.isNamed(this.#origin);
    fail("address_refused", `${what}: ${inWords(reference)}`, {
      facts: { ...facts(reference), host: url.host, rule: "private addresses" },
      hint: allow ? `the operator can add ${url.host} to HANGAR_REGISTRY_ALLOW_PRIVATE; or ${bring}` : bring,
    });
  }

  #missing(): never {
    const reference = this.#reference;
    fail("image_not_found", `image not found: ${inWords(reference)}`, {
      facts: facts(reference),
      hint: `check the name and the tag, or bring the image along: hangar images import ${reference.given} PATH`,
    });
  }

  #refuse(what: string): never {
    fail("image_refused", `${what}: ${inWords(this.#reference)}`, { facts: facts(this.#reference) });
  }
}

interface TokenResponse {
  token?: unknown;
  access_token?: unknown;
  expires_in?: unknown;
}

/** Parses the token service's response, up to a size limit. */
async function tokenResponse(response: Response, most_bytes: number): Promise<TokenResponse> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > most_bytes) return {};
    chunks.push(chunk);
  }
  return (JSON.parse(Buffer.concat(chunks).toString()) ?? {}) as TokenResponse;
}

function busy(response: Response, who: string): Transient {
  const after = Number(response.headers.get("retry-after"));
  const retry_after_ms = Number.isFinite(after) && after > 0 ? after * 1000 : undefined;
  return new Transient(`${who} answers ${response.status}`, { retry_after_ms });
}

/** fetch puts the reason into the cause. */
function why(thrown: unknown): string {
  const { cause, message } = thrown as Error & { cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}
