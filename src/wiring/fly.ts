/** The listener for Fly's clients, put together: part of platform.ts. */
import type { Settings } from "#core/settings.ts";
import { openFly } from "#fly/module.ts";
import type { Database } from "#stores/database.ts";
import { sqlSecretKeyStore } from "#stores/sql/secret-keys.ts";

export interface FlyPart {
  /** Its URL; undefined when there is none. */
  start(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Hosts serve no API. */
export function openFlyListener(
  database: Database,
  { fly: { listen }, role, hosts, host, proxy: { domain } }: Settings,
  parts: Omit<Parameters<typeof openFly>[0], "region" | "domain" | "secret_keys">,
): FlyPart {
  if (!listen || role === "host") return { start: async () => undefined, close: async () => {} };
  const secret_keys = sqlSecretKeyStore(database);
  const server = openFly({ ...parts, domain, secret_keys, region: hosts[0]?.region ?? (host.region || "local") });
  return {
    async start() {
      const { host, port } = await server.listen(listen.host, listen.port);
      return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    },
    close: () => server.close(),
  };
}
