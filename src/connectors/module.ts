/** Constructs the parts of the connectors module. */
import type { OrgService } from "#auth/orgs.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Row } from "#http/route.ts";
import { AuditLog } from "./audit-log.ts";
import { Gateway } from "./gateway.ts";
import { gatewayRoutes } from "./gateway-routes.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import { OAuthFlow } from "./oauth.ts";
import { oauthRoutes } from "./oauth-routes.ts";
import type { ProviderSetting } from "./providers.ts";
import { connectorRoutes } from "./routes.ts";
import { ConnectorService } from "./service.ts";
import type { SpriteFinder } from "./sprite.ts";
import type { ConnectorStore } from "./store.ts";
import { GatewayTester } from "./tester.ts";
import { Upstream, type UpstreamOptions } from "./upstream.ts";

interface ConnectorModuleParts extends UpstreamOptions {
  store: ConnectorStore;
  tokens: TokenService;
  orgs: OrgService;
  sprites: SpriteFinder;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  settings: Readonly<Record<string, ProviderSetting>>;
  /** The public origin. */
  base_url(): string;
  sprites_base_url(): string;
  /** Where the platform itself listens. */
  self_url(): string;
}

export class ConnectorModule {
  readonly gateway: Gateway;
  /** Routes for users and their programs. */
  readonly rows: Row[];
  /** Routes for machines. */
  readonly gateway_rows: Row[];
  readonly #audit_log: AuditLog;
  readonly #upstream: Upstream;
  readonly #parts: ConnectorModuleParts;

  constructor(parts: ConnectorModuleParts) {
    const { store, sealer, clock, log, settings, tokens, sprites, sprites_base_url, base_url, self_url } = parts;
    const audit_log = new AuditLog({ store, clock, log });
    const connectors = new ConnectorService({ store, sealer, clock, audit_log, tokens, settings });
    const oauth = new OAuthFlow({ store, connectors, sealer, clock, log, settings, base_url });
    const upstream = new Upstream(parts);
    const gateway = new Gateway({ store, connectors, oauth, upstream, audit_log, clock, settings, self_url });
    const tester = new GatewayTester({ gateway, upstream, sprites, clock });
    this.gateway = gateway;
    this.rows = [
      ...connectorRoutes({ ...parts, connectors, gateway, tester, audit_log }),
      ...oauthRoutes({ oauth, settings, sprites_base_url }),
    ];
    this.gateway_rows = gatewayRoutes({ gateway, store, oauth, sprites_base_url });
    this.#audit_log = audit_log;
    this.#upstream = upstream;
    this.#parts = parts;
  }

  /** Deletes expired data. */
  async expire(): Promise<void> {
    await this.#parts.store.purgeAudit(this.#parts.clock.now() - LIMITS.audit_kept_ms);
  }

  async close(): Promise<void> {
    await this.#upstream.close();
    await this.#audit_log.flush();
  }
}
