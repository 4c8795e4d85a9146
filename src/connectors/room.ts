/** The connectors room put together. */
import type { OrgService } from "#auth/orgs.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { Box } from "#core/box.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Row } from "#http/route.ts";
import { Gateway } from "./gateway.ts";
import { gatewayRoutes } from "./gateway-routes.ts";
import { UsageLedger } from "./ledger.ts";
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

interface ConnectorRoomParts extends UpstreamOptions {
  store: ConnectorStore;
  tokens: TokenService;
  orgs: OrgService;
  sprites: SpriteFinder;
  box: Box;
  clock: Clock;
  log: Log;
  settings: Readonly<Record<string, ProviderSetting>>;
  /** The public origin. */
  base_url(): string;
  sprites_base_url(): string;
  /** Where the platform itself listens. */
  self_url(): string;
}

export class ConnectorRoom {
  readonly gateway: Gateway;
  /** For people and their programs. */
  readonly rows: Row[];
  /** For machines. */
  readonly gateway_rows: Row[];
  readonly #ledger: UsageLedger;
  readonly #upstream: Upstream;
  readonly #parts: ConnectorRoomParts;

  constructor(parts: ConnectorRoomParts) {
    const { store, box, clock, log, settings, tokens, sprites, sprites_base_url, base_url, self_url } = parts;
    const ledger = new UsageLedger({ store, clock, log });
    const connectors = new ConnectorService({ store, box, clock, ledger, tokens, settings });
    const oauth = new OAuthFlow({ store, connectors, box, clock, log, settings, base_url });
    const upstream = new Upstream(parts);
    const gateway = new Gateway({ store, connectors, oauth, upstream, ledger, clock, settings, self_url });
    const tester = new GatewayTester({ gateway, upstream, sprites, clock });
    this.gateway = gateway;
    this.rows = [
      ...connectorRoutes({ ...parts, connectors, gateway, tester, ledger }),
      ...oauthRoutes({ oauth, settings, sprites_base_url }),
    ];
    this.gateway_rows = gatewayRoutes({ gateway, store, oauth, sprites_base_url });
    this.#ledger = ledger;
    this.#upstream = upstream;
    this.#parts = parts;
  }

  /** Forgets what is too old to be kept. */
  async expire(): Promise<void> {
    await this.#parts.store.purgeAudit(this.#parts.clock.now() - LIMITS.audit_kept_ms);
  }

  async close(): Promise<void> {
    await this.#upstream.close();
    await this.#ledger.flush();
  }
}
