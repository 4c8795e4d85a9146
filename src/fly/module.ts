/** The listener that implements Fly's API, so that Fly's own clients work unchanged. */
import type { Sealer } from "#core/sealer.ts";
import type { Guard } from "#http/access.ts";
import type { Row } from "#http/route.ts";
import { createServer, type Server } from "#http/server.ts";
import type { ServerParts } from "#http/server-parts.ts";
import { apiHost } from "./api-host.ts";
import { flyGuard } from "./authorization.ts";
import { PlatformRows } from "./calls.ts";
import { flyCustoms } from "./customs.ts";
import { graphqlRoute } from "./graphql/routes.ts";
import { machinesApi } from "./machines-api.ts";
import { placementRoute } from "./placements.ts";
import { secretKeyRoutes } from "./secret-keys/routes.ts";
import { SecretKeyService } from "./secret-keys/service.ts";
import type { SecretKeyStore } from "./secret-keys/store.ts";

interface FlyParts extends Pick<ServerParts, "clock" | "log" | "idempotency" | "rate"> {
  /** The platform's own rows, which do the work. */
  rows: readonly Row[];
  guard: Guard;
  region: string;
  /** Of host names of apps. */
  domain: string;
  secret_keys: SecretKeyStore;
  sealer: Sealer;
}

export function openFly({ rows, guard, region, domain, secret_keys, sealer, ...shared }: FlyParts): Server {
  const own = flyGuard(guard);
  const platform = new PlatformRows(rows, own);
  const keys = new SecretKeyService({ store: secret_keys, sealer, clock: shared.clock });
  return createServer({
    ...shared,
    guard: own,
    customs: flyCustoms(region),
    rows: [
      ...machinesApi(platform, domain),
      placementRoute(platform),
      ...secretKeyRoutes(keys),
      ...apiHost(platform),
      graphqlRoute({ rows: platform, log: shared.log, domain }),
    ],
  });
}
