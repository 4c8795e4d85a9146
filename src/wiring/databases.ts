/** Finds the machines that run a replicated-database node: the metrics module reports nodes, the machines module places them. */
import type { AppStore } from "#apps/store.ts";
import type { App } from "#apps/types.ts";
import type { Clock } from "#core/clock.ts";
import { SQLITE_PORT } from "#core/sqlite-node.ts";
import type { Row } from "#http/route.ts";
import type { MachineStore } from "#machines/store.ts";
import type { MetricsEngine } from "#metrics/engine/engine.ts";
import type { Reach } from "#proxy/exposure.ts";
import type { NodePlace } from "#replication/observed/observer.ts";
import { observedRoutes } from "#replication/observed/routes.ts";

interface DatabaseNeeds {
  clock: Clock;
  apps: Pick<AppStore, "findApp">;
  machines: Pick<MachineStore, "list">;
  engine(): Pick<MetricsEngine, "series">;
  reach: Reach;
}

/** A node serves metrics at its API port. */
const SIGN = [[{ name: "__name__", op: "=", value: "hangar_db_is_primary" }]] as const;
/** Time after which a node is queried again. */
const HEARD_MS = 5 * 60 * 1000;

export function databaseRoutes({ clock, apps, machines, engine, reach }: DatabaseNeeds): Row[] {
  const nodes = async (org_id: string): Promise<NodePlace[]> => {
    const now = clock.now();
    const scope = { selector: SIGN, start_ms: now - HEARD_MS, end_ms: now };
    const heard = JSON.parse(new TextDecoder().decode(await engine().series(org_id, scope))) as Record<
      string,
      string
    >[];
    const instances = new Set(heard.map(({ instance = "" }) => instance));
    const names = [...new Set(heard.map(({ app = "" }) => app))].sort();
    const found = await Promise.all(names.map((name) => apps.findApp(name)));
    // A machine's own metrics cannot claim another app, but imported ones can.
    const own = found.filter((app) => app !== undefined).filter((app) => app.org_id === org_id);
    return (await Promise.all(own.map((app) => running(app, instances)))).flat();
  };
  const running = async (app: App, instances: ReadonlySet<string>): Promise<NodePlace[]> =>
    (await machines.list(app.id, { states: ["started"] })).flatMap((machine) => {
      const { id, name, instance_id, config } = machine;
      const { metrics, sqlite } = config;
      const port = sqlite ? SQLITE_PORT : metrics?.https ? undefined : metrics?.port;
      const address = port === undefined ? undefined : reach(machine, port);
      if (!address || !(sqlite || instances.has(instance_id))) return [];
      return [{ app_name: app.name, machine_id: id, machine_name: name, instance_id, address }];
    });
  return observedRoutes({ clock, nodes });
}
