/**
 * OAuth 2 with an authorization code (RFC 6749) and PKCE (RFC 7636): a user authorizes the platform at a provider, and
 * the platform refreshes the token before it expires.
 */
import { createHash } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import type { OAuth, ProviderSetting } from "./providers.ts";
import { type ConnectorService, type Owner, providerOf } from "./service.ts";
import type { ConnectorStore } from "./store.ts";
import { type Account, accountOf, type TokenResponse, tokenRequest } from "./token-request.ts";
import type { AccessPolicy, Connection, Credential } from "./types.ts";

interface FlowParts {
  store: ConnectorStore;
  connectors: ConnectorService;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  settings: Readonly<Record<string, ProviderSetting>>;
  /** The public origin for redirects. */
  base_url(): string;
}

/** A provider's endpoints and the operator's client registration. */
interface Registration extends OAuth {
  client_id: string;
  client_secret: string;
  base_url: string | null;
}

/** A connector with its valid secrets. */
interface Fresh {
  connection: Connection;
  credential: Credential;
}

export class OAuthFlow {
  readonly #parts: FlowParts;
  /** Refreshes in progress; concurrent callers share one. */
  readonly #renewing = new Map<string, Promise<Fresh>>();

  constructor(parts: FlowParts) {
    this.#parts = parts;
  }

  /** Whether the operator registered a client at the provider. */
  offers(provider: string): boolean {
    return this.#parts.settings[provider]?.client_id !== undefined;
  }

  /** Returns the authorization URL. */
  async begin(
    org_id: string,
    provider: string,
    input: { scopes?: string; add_scopes?: string; state?: string; redirect_uri?: string },
    ids: Ids,
  ): Promise<{ authorize_url: string; state: string }> {
    const { store, sealer, clock } = this.#parts;
    const registration = this.#registration(provider);
    const state = input.state ?? ids.hex(32);
    const verifier = Buffer.from(ids.bytes(32)).toString("base64url");
    const scopes = listOf(input.scopes) ?? [...registration.scopes, ...(listOf(input.add_scopes) ?? [])];
    const redirect_uri = input.redirect_uri ?? this.#ownPage(provider);
    const now = clock.now();
    const sealed = sealer.seal(`oauth:${state}`, verifier);
    const pending = {
      state,
      org_id,
      provider,
      redirect_uri,
      scopes: scopes.join(","),
      verifier: sealed,
      created_at: now,
    };
    if (!(await store.insertPending(pending, now - LIMITS.oauth_state_ms, LIMITS.oauth_states_per_org)))
      fail("limit_reached", "this state was used before, or too many authorizations wait (limit oauth_states_per_org)");
    const url = new URL(registration.authorize_url);
    const parameters = {
      response_type: "code",
      client_id: registration.client_id,
      redirect_uri,
      scope: scopes.join(registration.separator),
      state,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(parameters)) if (value !== "") url.searchParams.set(name, value);
    return { authorize_url: url.href, state };
  }

  /** Finishes with the code of the redirect. */
  async finish(
    owner: Owner,
    provider: string,
    { code, state, access_policy }: { code: string; state: string; access_policy?: AccessPolicy },
    ids: Ids,
  ): Promise<Connection> {
    const { store, sealer, clock, connectors } = this.#parts;
    const registration = this.#registration(provider);
    const pending = await store.takePending(owner.org.id, provider, state);
    if (!pending || pending.created_at < clock.now() - LIMITS.oauth_state_ms)
      return fail("invalid_request", "this authorization was not started here, is finished, or expired", {
        hint: `begin again: GET /v1/oauth/${provider}/authorize`,
      });
    const answer = await this.#requestToken(registration, {
      grant_type: "authorization_code",
      code,
      redirect_uri: pending.redirect_uri,
      code_verifier: sealer.open(`oauth:${state}`, pending.verifier).toString(),
    }).catch((error: unknown) => {
      const why = error instanceof ApiError ? `: ${error.message}` : "";
      return fail("invalid_request", `failed to exchange authorization code${why}`, { cause: error });
    });
    const account = await this.#account(registration, answer);
    const scopes = answer.scope?.split(/[ ,]+/).join(",") ?? pending.scopes;
    return await connectors.create(
      owner,
      {
        provider,
        connection_type: "oauth",
        credential: credentialOf(answer),
        scopes,
        token_expires_at: this.#expiry(answer),
        access_policy,
        ...(account ? { account } : {}),
      },
      ids,
    );
  }

  /** The connector's credential, refreshed if it is about to expire. */
  async fresh(connection: Connection): Promise<Fresh> {
    const { clock, connectors } = this.#parts;
    const credential = connectors.reveal(connection);
    const { token_expires_at, id } = connection;
    const left = token_expires_at === null ? Infinity : token_expires_at - clock.now();
    if (left > LIMITS.oauth_refresh_ms) return { connection, credential };
    if (credential.refresh_token === undefined) {
      if (left > 0) return { connection, credential };
      return fail("connector_unusable", "the connector's token has expired and cannot be renewed; connect it again");
    }
    const renewing =
      this.#renewing.get(id) ?? this.#renew(connection, credential).finally(() => this.#renewing.delete(id));
    this.#renewing.set(id, renewing);
    try {
      return await renewing;
    } catch (error) {
      // The old token is still valid; the next call retries.
      if (left <= 0) throw error;
      this.#parts.log.warn({ error, connection: id }, "a connector's token could not be renewed yet");
      return { connection, credential };
    }
  }

  async #renew(connection: Connection, credential: Credential): Promise<Fresh> {
    const { store, connectors } = this.#parts;
    const grant = { grant_type: "refresh_token", refresh_token: credential.refresh_token ?? "" };
    let answer: TokenResponse;
    try {
      answer = await this.#requestToken(this.#registration(connection.provider), grant);
    } catch (thrown) {
      // Another process may have refreshed it: then this refresh token was used, and the stored one is valid.
      const now = await store.findConnection(connection.id);
      if (now && now.revision !== connection.revision) return { connection: now, credential: connectors.reveal(now) };
      throw thrown;
    }
    const renewed = { ...credential, ...credentialOf(answer) };
    const expires_at = this.#expiry(answer);
    for (let current: Connection | undefined = connection; current; current = await store.findConnection(current.id)) {
      const written = await connectors.renewed(current, renewed, expires_at);
      if (written) return { connection: written, credential: renewed };
    }
    return fail("not_found", "the connector was deleted");
  }

  #registration(name: string): Registration {
    const { oauth, base_url, title } = providerOf(name, "oauth");
    const { client_id, client_secret, ...own } = this.#parts.settings[name] ?? {};
    if (!oauth || !client_id || !client_secret)
      return fail("invalid_request", `this platform is not registered at ${title}`, {
        hint: `put client_id and client_secret under [connectors.${name}] in the config file`,
      });
    return {
      ...oauth,
      authorize_url: own.authorize_url ?? oauth.authorize_url,
      token_url: own.token_url ?? oauth.token_url,
      base_url: own.base_url ?? base_url,
      client_id,
      client_secret,
    };
  }

  async #requestToken(
    { token_url, client_id, client_secret }: Registration,
    grant: Record<string, string>,
  ): Promise<TokenResponse> {
    return await tokenRequest(token_url, { client_id, client_secret, ...grant });
  }

  async #account({ base_url, account }: Registration, answer: TokenResponse): Promise<Account | undefined> {
    return base_url === null ? undefined : await accountOf(`${base_url}${account.path}`, account, answer.access_token);
  }

  #expiry({ expires_in }: TokenResponse): number | null {
    return expires_in === undefined ? null : this.#parts.clock.now() + expires_in * 1000;
  }

  #ownPage(provider: string): string {
    return `${this.#parts.base_url()}/v1/oauth/${provider}/callback`;
  }
}

const credentialOf = ({ access_token, refresh_token }: TokenResponse): Credential => ({
  token: access_token,
  ...(refresh_token === undefined ? {} : { refresh_token }),
});

function listOf(text: string | undefined): string[] | undefined {
  const list = text?.split(",").flatMap((item) => item.trim() || []);
  return list?.length ? list : undefined;
}
