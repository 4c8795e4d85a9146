import { ApiError, fail } from "#core/errors.ts";
import { checkSlug } from "#core/names.ts";
import type { Query } from "./context.ts";
import { userNode } from "./details.ts";
import {
  type AppFields,
  appNode,
  appsOf,
  connection,
  findApp,
  findVolume,
  type MachineFields,
  machineNode,
  type OrgFields,
  orgNode,
  regionNode,
  regionsOf,
} from "./nodes.ts";

export const orgsOf = async (query: Query): Promise<OrgFields[]> =>
  (await query.read<{ organizations: OrgFields[] }>("GET /v1/orgs")).organizations;

/** Every app that the caller sees. */
async function allApps(query: Query): Promise<AppFields[]> {
  const apps = await Promise.all((await orgsOf(query)).map(({ slug }) => appsOf(query, slug)));
  return apps.flat();
}

const orNull = async <T>(found: Promise<T>): Promise<T | null> => {
  try {
    return await found;
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.code === "not_found") return null;
    throw thrown;
  }
};

/** Apps by name, in pages; the cursor is the last name. */
async function apps(args: { organizationId?: string; first?: number; after?: string; role?: string }, query: Query) {
  const found = args.organizationId ? await appsOf(query, args.organizationId) : await allApps(query);
  const sorted = args.role ? [] : found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rest = args.after ? sorted.filter(({ name }) => name > (args.after ?? "")) : sorted;
  const page = rest.slice(0, args.first ?? rest.length);
  return {
    nodes: page.map(appNode),
    totalCount: sorted.length,
    pageInfo: { hasNextPage: page.length < rest.length, endCursor: page.at(-1)?.name ?? null },
  };
}

/** A machine by its id alone, among the caller's organizations. */
async function machine({ machineId }: { machineId: string }, query: Query): Promise<object | null> {
  for (const { slug } of await orgsOf(query)) {
    let cursor: string | undefined;
    do {
      const page = await query.invoke<{ machines: { id: string; app_name: string }[] }>(
        "GET /v1/orgs/:org_slug/machines",
        { params: { org_slug: slug }, query: { limit: 1000, ...(cursor ? { cursor } : {}) } },
      );
      const found = page.value.machines.find(({ id }) => id === machineId);
      if (found) return await machineOf(query, found.app_name, machineId);
      cursor = page.next;
    } while (cursor !== undefined);
  }
  fail("not_found", `machine not found: ${machineId}`);
}

async function machineOf(query: Query, app_name: string, machine_id: string): Promise<object> {
  const params = { app_name, machine_id };
  const [found, app] = await Promise.all([
    query.read<MachineFields>("GET /v1/apps/:app_name/machines/:machine_id", { params }),
    findApp(query, app_name),
  ]);
  return machineNode(found, app);
}

const viewer = (_: unknown, query: Query) => userNode(query.caller.name);
const org = (query: Query, org_slug: string): Promise<OrgFields> =>
  query.read("GET /v1/orgs/:org_slug", { params: { org_slug } });
const noImages = (): never =>
  fail(
    "not_found",
    "Unknown repository: there are no images of Fly's own here; name one, such as postgres:16, with --image",
  );

export const queries = {
  app: async ({ name, internalId }: { name?: string; internalId?: string }, query: Query) =>
    appNode(await findApp(query, name ?? internalId ?? "")),
  apps,
  machine,
  viewer,
  currentUser: viewer,
  async appNameAvailable({ name }: { name: string }, query: Query) {
    checkSlug(name, "name");
    return (await orNull(findApp(query, name))) === null;
  },
  async canPerformBluegreenDeployment({ name }: { name: string }, query: Query) {
    await findApp(query, name);
    return true;
  },
  volume: async ({ id }: { id: string }, query: Query) => await findVolume(query, await allApps(query), id),
  organization: async ({ id, slug }: { id?: string; slug?: string }, query: Query) =>
    orgNode(await org(query, slug ?? id ?? "personal")),
  organizations: async (_: unknown, query: Query) => connection((await orgsOf(query)).map(orgNode)),
  personalOrganization: async (_: unknown, query: Query) => {
    const found = await orNull(org(query, "personal"));
    return found && orgNode(found);
  },
  async platform(_: unknown, query: Query) {
    const { nearest, regions } = await regionsOf(query);
    return { requestRegion: nearest, regions: regions.map(regionNode) };
  },
  async nearestRegion(_: unknown, query: Query) {
    const { nearest, regions } = await regionsOf(query);
    const found = regions.find(({ code }) => code === nearest) ?? regions[0];
    return found && regionNode(found);
  },
  latestImageTag: noImages,
  latestImageDetails: noImages,
};
