import { useMemo } from "preact/hooks";
import { useCell } from "./cell.ts";
import { fleet } from "./fleet.ts";
import { useAnswer } from "./parts/basics.ts";
import { call, org } from "./session.ts";

/** Apps that are offered by name. */
const OFFERED = 1000;

/** Names of the organization's apps: those of its machines, or of a large organization as the platform lists them. */
export function useAppNames(): readonly string[] {
  const live = useCell(fleet);
  const { large, machines } = live;
  const listed = useAnswer(
    async (signal) => {
      if (!large) return [];
      const { apps } = await call("GET /v1/apps", { query: { org_slug: org(), limit: OFFERED }, signal });
      return apps.map(({ name }) => name);
    },
    [large],
  );
  // Depends on the fleet, because its map is mutated in place.
  const own = useMemo(() => [...new Set([...machines.values()].map(({ app_name }) => app_name))].sort(), [live]);
  return large ? (listed.value ?? own) : own;
}
