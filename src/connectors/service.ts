/** Creates, changes and deletes connectors. Secrets are never returned. */
import type { Principal } from "#auth/principal.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { Org } from "#auth/types.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { fail, type Problem } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS as CORE_LIMITS } from "#core/limits.ts";
import type { Sealer } from "#core/sealer.ts";
import { closest } from "#core/words.ts";
import type { AuditLog } from "./audit-log.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import { PROVIDER_KEYS, PROVIDERS, type Provider, type ProviderSetting } from "./providers.ts";
import type { ConnectorStore } from "./store.ts";
import type { AccessPolicy, Connection, ConnectionType, Credential, ProviderInfo } from "./types.ts";

interface ServiceParts {
  store: ConnectorStore;
  sealer: Sealer;
  clock: Clock;
  audit_log: AuditLog;
  tokens: TokenService;
  /** The operator's provider settings. */
  settings: Readonly<Record<string, ProviderSetting>>;
}

/** Who creates or changes a connector. */
export interface Owner {
  org: Pick<Org, "id" | "slug">;
  maker: Principal;
}

/** Mutable fields; the credential is passed open and stored sealed. */
type Change = Partial<Pick<Connection, "access_policy" | "token_expires_at">> & { credential?: Credential };

interface NewConnection {
  provider: string;
  connection_type: ConnectionType;
  credential: Credential;
  account?: { id: string; name: string };
  provider_info?: ProviderInfo;
  scopes?: string;
  token_expires_at?: number | null;
  access_policy?: AccessPolicy | undefined;
}

export class ConnectorService {
  readonly #parts: ServiceParts;
  /** Decrypted once per revision: a busy connector would need it a thousand times a second. */
  readonly #revealed = new Map<string, { revision: number; credential: Credential }>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  async list(org_id: string, provider?: string): Promise<Connection[]> {
    return await this.#parts.store.connections(org_id, provider);
  }

  /** Of an organization that the caller may see. */
  async get(id: string, sees: (org: { id: string }) => boolean): Promise<Connection> {
    const found = await this.#parts.store.findConnection(id);
    if (!found || !sees({ id: found.org_id })) return unknownConnection(id);
    return found;
  }

  /** Creates one with the caller's key. */
  async createWithKey(
    owner: Owner,
    {
      api_key,
      name,
      ...input
    }: { provider: string; api_key: string; name?: string; access_policy?: AccessPolicy; provider_info: ProviderInfo },
    ids: Ids,
  ): Promise<Connection> {
    const provider = providerOf(input.provider, "api_key");
    if (provider.base_url === null && input.provider_info.base_url === undefined)
      bad("body.base_url", `is required: ${provider.title} is somewhere else for everyone`, "https://…");
    const credential = readKey(provider, api_key);
    const account = { id: this.#fingerprint(credential), name: name || provider.title };
    return await this.create(owner, { ...input, connection_type: "api_key", credential, account }, ids);
  }

  /** Creates one for any HTTP API. */
  async createCustom(
    owner: Owner,
    input: { name: string; access_token: string; access_policy?: AccessPolicy; provider_info: ProviderInfo },
    ids: Ids,
  ): Promise<Connection> {
    const credential = { token: checkSecret(input.access_token, "body.access_token") };
    const account = { id: this.#fingerprint(credential), name: input.name };
    const { access_policy, provider_info } = input;
    return await this.create(
      owner,
      { provider: "custom_api", connection_type: "api_key", credential, account, provider_info, access_policy },
      ids,
    );
  }

  /** Creates one with the operator's key, or, for the platform itself, a token created for it. */
  async provision(
    owner: Owner & { org: Org },
    input: { provider: string; access_policy?: AccessPolicy | undefined },
    ids: Ids,
  ): Promise<Connection> {
    const { tokens, settings } = this.#parts;
    const { provider: name, access_policy } = input;
    const provider = providerOf(name, "provisioned", "internal");
    if (provider.made_by.includes("internal")) {
      const wanted = {
        org: owner.org,
        kind: "connector" as const,
        name: `connector ${name}`,
        expiry_ms: CORE_LIMITS.token_expiry_ms,
        maker: owner.maker,
      };
      const { text, token } = await tokens.create(wanted, ids);
      const account = { id: token.id, name: owner.org.slug };
      const made = {
        provider: name,
        connection_type: "internal" as const,
        credential: { token: text },
        account,
        access_policy,
      };
      return await this.create(owner, made, ids);
    }
    const key = settings[name]?.api_key;
    if (!key)
      fail("invalid_request", `the operator provides no key for ${name}`, {
        hint: `put api_key under [connectors.${name}] in the config file, or create the connector with a key of your own`,
      });
    // The key stays in the settings, so a new one applies at once.
    const account = { id: "operator", name: "the operator's" };
    return await this.create(
      owner,
      { provider: name, connection_type: "provisioned", credential: { token: "" }, account, access_policy },
      ids,
    );
  }

  async create(owner: Owner, input: NewConnection, ids: Ids): Promise<Connection> {
    const { store, sealer, clock, audit_log } = this.#parts;
    const id = ids.short();
    const now = clock.now();
    const { credential, account } = input;
    const connection: Connection = {
      id,
      org_id: owner.org.id,
      provider: input.provider,
      connection_type: input.connection_type,
      provider_account_id: account?.id ?? this.#fingerprint(credential),
      provider_account_name: account?.name ?? PROVIDERS[input.provider]?.title ?? input.provider,
      provider_info: input.provider_info ?? {},
      scopes: input.scopes ?? "",
      token_expires_at: input.token_expires_at ?? null,
      inserted_at: now,
      updated_at: now,
      user_id: owner.maker.token_id,
      maker_expires_at: owner.maker.expires_at,
      access_policy: input.access_policy ?? {},
      credential: sealer.seal(place(id), JSON.stringify(credential)),
      revision: 1,
    };
    const audit = audit_log.entry(connection, "created", owner.maker.name);
    const outcome = await store.insertConnection(connection, audit, LIMITS.connections_per_org);
    if (outcome === "no_org") fail("not_found", `there is no organization ${JSON.stringify(owner.org.slug)}`);
    if (outcome === "limit")
      fail(
        "limit_reached",
        `an organization has at most ${LIMITS.connections_per_org} connectors (limit connections_per_org)`,
      );
    return connection;
  }

  async setPolicy(connection: Connection, access_policy: AccessPolicy, actor: string): Promise<Connection> {
    return await this.#change(connection, { access_policy }, "policy", actor);
  }

  /** Replaces the key of the same account. */
  async rotate(connection: Connection, api_key: string, actor: string): Promise<Connection> {
    if (connection.connection_type !== "api_key")
      fail("invalid_request", `a connector of type ${connection.connection_type} has no key of its own to replace`);
    const provider = PROVIDERS[connection.provider];
    const credential = provider ? readKey(provider, api_key) : { token: checkSecret(api_key, "body.api_key") };
    return await this.#change(connection, { credential }, "rotated", actor);
  }

  /** Stores a refreshed OAuth token. Undefined after a concurrent change. */
  async renewed(
    connection: Connection,
    credential: Credential,
    token_expires_at: number | null,
  ): Promise<Connection | undefined> {
    const { store, audit_log } = this.#parts;
    const next = this.#next(connection, { credential, token_expires_at });
    const audit = audit_log.entry(connection, "refreshed", "the platform");
    return (await store.putConnection(next, audit)) ? next : undefined;
  }

  /** Deletes it with its credential. */
  async delete(connection: Connection, actor: string): Promise<void> {
    const { store, audit_log, tokens } = this.#parts;
    // First, so that a crash leaves a broken connector rather than an unknown token.
    if (connection.connection_type === "internal")
      await tokens.revoke(connection.org_id, connection.provider_account_id);
    this.#revealed.delete(connection.id);
    if (!(await store.deleteConnection(connection.id, audit_log.entry(connection, "deleted", actor))))
      unknownConnection(connection.id);
  }

  /** Fails when its creator's token is no longer valid: a connector can do no more than its creator. */
  async refuseFallen({ id, user_id, maker_expires_at }: Connection): Promise<void> {
    const { tokens, clock } = this.#parts;
    const expired = maker_expires_at !== null && maker_expires_at <= clock.now();
    const fallen = expired ? `expired ${isoTime(maker_expires_at)}` : await tokens.fallen(user_id);
    if (fallen === undefined) return;
    fail("connector_denied", `the token that made connector ${id} ${fallen}`, {
      facts: { rule: "maker's token", connection_id: id },
      hint: "create the connector again with a valid token",
    });
  }

  /** The secrets, for the gateway only. */
  reveal({ id, credential, connection_type, provider, revision }: Connection): Credential {
    if (connection_type === "provisioned") return { token: this.#parts.settings[provider]?.api_key ?? "" };
    const known = this.#revealed.get(id);
    if (known?.revision === revision) return known.credential;
    const opened = JSON.parse(this.#parts.sealer.open(place(id), credential).toString()) as Credential;
    this.#revealed.set(id, { revision, credential: opened });
    const [oldest] = this.#revealed.keys();
    if (this.#revealed.size > LIMITS.credentials_open && oldest !== undefined) this.#revealed.delete(oldest);
    return opened;
  }

  #next(connection: Connection, { credential, ...rest }: Change): Connection {
    const { sealer, clock } = this.#parts;
    return {
      ...connection,
      ...rest,
      ...(credential ? { credential: sealer.seal(place(connection.id), JSON.stringify(credential)) } : {}),
      updated_at: clock.now(),
      revision: connection.revision + 1,
    };
  }

  /** The last of two changes wins; both are in the audit log. */
  async #change(
    connection: Connection,
    change: Change,
    action: "policy" | "rotated",
    actor: string,
  ): Promise<Connection> {
    const { store, audit_log } = this.#parts;
    for (
      let current: Connection | undefined = connection;
      current;
      current = await store.findConnection(connection.id)
    ) {
      const next = this.#next(current, change);
      if (await store.putConnection(next, audit_log.entry(current, action, actor))) return next;
    }
    return unknownConnection(connection.id);
  }

  /** Distinguishes keys without revealing them. */
  #fingerprint({ token }: Credential): string {
    return `key-${this.#parts.sealer.derive(`connector-key:${token}`).toString("hex").slice(0, 12)}`;
  }
}

const place = (id: string): string => `connection:${id}`;

function unknownConnection(id: string): never {
  fail("not_found", `there is no connector ${JSON.stringify(id)}`);
}

export function bad(path: string, problem: string, allowed?: string): never {
  const details: Problem[] = [{ path, problem, ...(allowed ? { allowed } : {}) }];
  fail("invalid_request", `${path} ${problem}`, { details });
}

/** The provider, if connectors can be created in one of these ways. */
export function providerOf(name: string, ...ways: readonly Provider["made_by"][number][]): Provider {
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (!provider) {
    const near = closest(name, PROVIDER_KEYS);
    return bad("body.provider", `is not a provider${near ? `; did you mean ${near}?` : ""}`, PROVIDER_KEYS.join(", "));
  }
  if (!ways.some((method) => provider.made_by.includes(method)))
    bad("body.provider", `${provider.title} is connected another way: ${provider.made_by.join(" or ")}`);
  return provider;
}

/** An object store's key has two parts. */
function readKey(provider: Provider, api_key: string): Credential {
  const key = checkSecret(api_key, "body.api_key");
  if (provider.placement.in !== "signature") return { token: key };
  const [access_key_id = "", ...secret] = key.split(":");
  if (secret.length === 0) bad("body.api_key", "is not ACCESS_KEY_ID:SECRET_ACCESS_KEY");
  return { access_key_id, token: secret.join(":") };
}

/** Valid in a header. The value itself is never repeated. */
function checkSecret(secret: string, path: string): string {
  if (!/^[!-~]+(?: [!-~]+)*$/.test(secret))
    bad(path, "is empty, or holds a character that cannot stand in a header", "visible ASCII characters");
  return secret;
}
