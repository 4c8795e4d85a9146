/** Reads the current state of apps as a desired-state document. */
import type { Machine, MachineConfig, Volume } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { collect } from "../lists.ts";
import type { Context } from "../verb.ts";
import { type AppDocument, refsOf, renameMounts } from "./document.ts";

/** The current state of an app, with ids. */
export interface AppNow {
  document: AppDocument;
  volumes: Map<string, Volume>;
  machines: Pick<Machine, "id" | "name" | "state" | "instance_id">[];
}

/** Undefined when the app does not exist. */
export async function readApp({ client }: Context, app_name: string): Promise<AppNow | undefined> {
  const params = { app_name };
  const app = await client.call("GET /v1/apps/:app_name", { params }).catch((thrown: unknown) => {
    if (thrown instanceof ClientError && thrown.http === 404) return undefined;
    throw thrown;
  });
  if (!app) return undefined;
  const [machines, volumes, { ips }, { secrets }] = await Promise.all([
    collect(client.pages("GET /v1/apps/:app_name/machines", { params })),
    collect(client.pages("GET /v1/apps/:app_name/volumes", { params })),
    client.call("GET /v1/apps/:app_name/ip_assignments", { params }),
    client.call("GET /v1/apps/:app_name/secrets", { params }),
  ]);
  const refs = refsOf(volumes);
  const refOf = new Map([...refs].map(([ref, { id }]) => [id, ref]));
  return {
    machines,
    volumes: refs,
    document: {
      name: app.name,
      org_slug: app.organization.slug,
      network: app.network,
      ips: ips.map(({ type }) => type).sort(),
      secrets: secrets.map(({ name }) => name),
      volumes: [...refs].map(([ref, { name, region, size_gb, snapshot_retention, auto_backup_enabled }]) => ({
        ref,
        name,
        region,
        size_gb,
        snapshot_retention,
        auto_backup_enabled,
      })),
      machines: machines
        .map(({ name, region, state, config }) => ({
          name,
          region,
          state,
          config: renameMounts(config as unknown as MachineConfig, (id) => `@${refOf.get(id) ?? id}`),
        }))
        .sort((a, b) => a.name.localeCompare(b.name)),
    },
  };
}
