/** Who machines are to others, put together: part of platform.ts, on a page of its own. */
import { readFileSync } from "node:fs";
import type { SecretService } from "#apps/secrets.ts";
import type { OrgService } from "#auth/orgs.ts";
import type { AuthStore } from "#auth/store.ts";
import type { TokenService } from "#auth/tokens.ts";
import { ConnectorModule } from "#connectors/module.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { Row } from "#http/route.ts";
import { type MachineSocketAuthenticator, spriteFinder } from "#identity/machine-authenticator.ts";
import { IdentityModule } from "#identity/module.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { NetworkListener } from "#network/network-listeners.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlConnectorStore } from "#stores/sql/connectors.ts";
import { sqlKeyStore } from "#stores/sql/identity.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";

interface InsideNeeds {
  dir: DataDir;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  tokens: TokenService;
  orgs: OrgService;
  authStore: AuthStore;
  secrets: SecretService;
}

interface InsidePart {
  rows: Row[];
  machine_authenticator: MachineSocketAuthenticator;
  local: LocalApi;
  network_listeners: readonly NetworkListener[];
  start: IdentityModule["start"];
  guards: IdentityModule["guards"];
  expire(): Promise<void>;
  close(): Promise<void>;
}

/** Opens machine identity, the gateway, and the API inside machines. */
export function openIdentity(
  database: Database,
  settings: Settings,
  facts: { base_url: string },
  { dir, secrets, authStore: auth, ...needs }: InsideNeeds,
): InsidePart {
  // Known once the platform listens; earlier token requests are retried.
  const base_url = (): string =>
    facts.base_url || fail("overloaded", "the platform is still starting", { retry_after_s: 1 });
  const sprites_base_url = (): string => settings.sprites_base_url || base_url();
  const identity = new IdentityModule({
    ...needs,
    store: sqlKeyStore(database),
    auth,
    machines: sqlMachineStore(database),
    secrets: (app_id) => secrets.reveal(app_id),
    dir: dir.file("run/api"),
    lifetime_s: settings.oidc_token_lifetime_s,
    base_url,
    issuer_url: () => settings.oidc_issuer_url || `${base_url()}/oidc`,
    sprites_base_url,
  });
  const connectors = new ConnectorModule({
    ...needs,
    sprites: spriteFinder(sqlMachineStore(database)),
    store: sqlConnectorStore(database),
    settings: settings.connectors,
    allow_private: settings.gateway_allow_private,
    base_url,
    sprites_base_url,
    self_url: () => readFileSync(dir.file("address"), "utf8").trim(),
  });
  return {
    rows: [...connectors.rows, ...connectors.gateway_rows, ...identity.rows],
    machine_authenticator: identity.machine_authenticator,
    local: identity.local,
    network_listeners: [identity.network],
    start: (rows, parts) => identity.start(rows, parts),
    guards: (guard) => identity.guards(guard),
    expire: () => connectors.expire(),
    async close() {
      await identity.close();
      await connectors.close();
    },
  };
}
