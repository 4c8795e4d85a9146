/**
 * Objects of the schema, made from responses of the platform's rows. A property that is a function is a field's
 * resolver:
 * it is called with the field's arguments and the query.
 */

import type { CertificateFields } from "../shapes.ts";
import type { Query } from "./context.ts";
import { certificateNode, type ReleaseFields, releaseNode, type TokenFields, tokenNode } from "./details.ts";

export interface OrgFields {
  slug: string;
  name: string;
  internal_numeric_id: number;
}
export interface AppFields {
  id: string;
  name: string;
  internal_numeric_id: number;
  status: string;
  network: string;
  created_at: number;
  organization: OrgFields;
}
export interface MachineFields {
  id: string;
  name: string;
  state: string;
  region: string;
  instance_id: string;
  private_ip: string;
  config: Record<string, unknown>;
  image_ref: { registry: string; repository: string; tag?: string; digest: string };
  created_at: string;
  updated_at: string;
  host?: string;
}
interface AddressFields {
  ip: string;
  type: string;
  region: string;
  shared: boolean;
  network: string;
  service_name: string;
  created_at: string;
}
export interface RegionFields {
  code: string;
  name: string;
  latitude: number;
  longitude: number;
  gateway_available: boolean;
  requires_paid_plan: boolean;
  deprecated: boolean;
}

/** An empty connection for resources that the platform does not have. */
const NOTHING = { nodes: [] };
const whole = { hasNextPage: false, endCursor: null };

export const connection = <Node>(nodes: readonly Node[]) => ({ nodes, totalCount: nodes.length, pageInfo: whole });

/** An organization's slug is its id here: it is what every route takes. */
export const orgNode = ({ slug, name, internal_numeric_id }: OrgFields): object => ({
  id: slug,
  internalNumericId: String(internal_numeric_id),
  slug,
  rawSlug: slug,
  name,
  type: slug === "personal" ? "PERSONAL" : "SHARED",
  paidPlan: true,
  billable: true,
  billingStatus: "CURRENT",
  viewerRole: "admin",
  provisionsBetaExtensions: false,
  remoteBuilderImage: "",
  remoteBuilderApp: null,
  members: { edges: [], nodes: [] },
  wireGuardPeers: NOTHING,
  addOns: NOTHING,
  apps: async (_: unknown, query: Query) => connection((await appsOf(query, slug)).map(appNode)),
  limitedAccessTokens: async (_: unknown, query: Query) => connection(await tokensOf(query, slug)),
});

export async function appsOf(query: Query, org_slug: string): Promise<AppFields[]> {
  return (await query.read<{ apps: AppFields[] }>("GET /v1/apps", { query: { org_slug } })).apps;
}

async function tokensOf(query: Query, org_slug: string): Promise<object[]> {
  const { tokens } = await query.read<{ tokens: TokenFields[] }>("GET /v1/orgs/:org_slug/tokens", {
    params: { org_slug },
  });
  return tokens.filter(({ revoked_at }) => revoked_at === null).map((token) => tokenNode(token, org_slug));
}

export async function regionsOf(query: Query): Promise<{ nearest: string; regions: RegionFields[] }> {
  return await query.read("GET /v1/platform/regions");
}

export const regionNode = (region: RegionFields): object => ({
  ...region,
  gatewayAvailable: region.gateway_available,
  requiresPaidPlan: region.requires_paid_plan,
});

/** An app's name is its id, as it is at Fly. */
export function appNode(app: AppFields): object {
  const params = { app_name: app.name };
  const addresses = (query: Query) =>
    query.read<{ ips: AddressFields[] }>("GET /v1/apps/:app_name/ip_assignments", { params });
  const machines = (query: Query) => query.read<MachineFields[]>("GET /v1/apps/:app_name/machines", { params });
  const releases = (query: Query, first: number) => releasesOf(query, app.name, first);
  return {
    id: app.name,
    internalNumericId: app.internal_numeric_id,
    name: app.name,
    status: app.status,
    state: app.status.toUpperCase(),
    network: app.network === "default" ? null : app.network,
    deployed: app.status === "deployed",
    platformVersion: "machines",
    createdAt: new Date(app.created_at).toISOString(),
    organization: orgNode(app.organization),
    role: null,
    config: { definition: {} },
    services: [],
    hostIssues: NOTHING,
    addOns: NOTHING,
    egressIpAddresses: NOTHING,
    hostname: (_: unknown, query: Query) => `${app.name}.${query.domain}`,
    cnameTarget: (_: unknown, query: Query) => `${app.name}.${query.domain}`,
    appUrl: (_: unknown, query: Query) => `http://${app.name}.${query.domain}`,
    version: async (_: unknown, query: Query) => (await releases(query, 1))[0]?.version ?? 0,
    regions: async (_: unknown, query: Query) => (await regionsOf(query)).regions.map(regionNode),
    secrets: async (_: unknown, query: Query) => await secretNodes(query, app.name),
    machines: async (_: unknown, query: Query) =>
      connection((await machines(query)).map((machine) => machineNode(machine, app))),
    volumes: async (_: unknown, query: Query) => connection(await volumeNodes(query, app)),
    ipAddresses: async (_: unknown, query: Query) =>
      connection((await addresses(query)).ips.filter(({ shared }) => !shared).map(addressNode)),
    sharedIpAddress: async (_: unknown, query: Query) =>
      (await addresses(query)).ips.find(({ shared }) => shared)?.ip ?? null,
    certificates: async (_: unknown, query: Query) => connection(await certificateNodes(query, app.name)),
    certificate: async ({ hostname }: { hostname: string }, query: Query) =>
      (await certificateNodes(query, app.name)).find((one) => one.hostname === hostname) ?? null,
    image: async ({ ref }: { ref: string }, query: Query) => await imageNode(query, app.name, ref),
    imageDetails: async (_: unknown, query: Query) => imageDetails((await machines(query))[0]),
    currentRelease: async (_: unknown, query: Query) => (await releases(query, 1)).map(releaseNode)[0] ?? null,
    currentReleaseUnprocessed: async (_: unknown, query: Query) =>
      (await releases(query, 1)).map(releaseNode)[0] ?? null,
    releases: async ({ first }: { first?: number }, query: Query) =>
      connection((await releases(query, first ?? 25)).map(releaseNode)),
    releasesUnprocessed: async ({ first }: { first?: number }, query: Query) =>
      connection((await releases(query, first ?? 25)).map(releaseNode)),
    limitedAccessTokens: async (_: unknown, query: Query) => connection(await tokensOf(query, app.organization.slug)),
  };
}

async function releasesOf(query: Query, app_name: string, limit: number): Promise<ReleaseFields[]> {
  const given = { params: { app_name }, query: { limit } };
  return (await query.read<{ releases: ReleaseFields[] }>("GET /v1/apps/:app_name/releases", given)).releases;
}

export const findApp = (query: Query, app_name: string): Promise<AppFields> =>
  query.read<AppFields>("GET /v1/apps/:app_name", { params: { app_name } });

async function secretNodes(query: Query, app_name: string): Promise<object[]> {
  const { secrets } = await query.read<{ secrets: { name: string; digest: string; created_at: string }[] }>(
    "GET /v1/apps/:app_name/secrets",
    { params: { app_name } },
  );
  return secrets.map(({ name, digest, created_at }) => ({ id: name, name, digest, createdAt: created_at }));
}

export const machineNode = (machine: MachineFields, app: AppFields): object => ({
  ...machine,
  instanceId: machine.instance_id,
  createdAt: machine.created_at,
  updatedAt: machine.updated_at,
  app: appNode(app),
  host: { id: machine.host ?? "" },
  egressIpAddresses: NOTHING,
  ips: { nodes: [{ family: "v6", kind: "privatenet", ip: machine.private_ip, maskSize: 112 }] },
});

interface VolumeFields {
  id: string;
  size_gb: number;
  created_at: string;
}

async function volumeNodes(query: Query, app: AppFields): Promise<{ id: string }[]> {
  const params = { app_name: app.name };
  const volumes = await query.read<VolumeFields[]>("GET /v1/apps/:app_name/volumes", { params });
  return volumes.map((volume) => ({
    ...volume,
    sizeGb: volume.size_gb,
    createdAt: volume.created_at,
    app: appNode(app),
    snapshots: async () => {
      const given = { params: { ...params, volume_id: volume.id } };
      const found = await query.read<({ created_at: string; retention_days: number } & object)[]>(
        "GET /v1/apps/:app_name/volumes/:volume_id/snapshots",
        given,
      );
      return connection(found.map((one) => ({ ...one, createdAt: one.created_at, retentionDays: one.retention_days })));
    },
  }));
}

/** A volume whose app is not named; the apps that the caller sees are searched, as far as the limit of calls goes. */
export async function findVolume(query: Query, apps: readonly AppFields[], id: string): Promise<object | null> {
  for (const app of apps) {
    const found = (await volumeNodes(query, app)).find((volume) => volume.id === id);
    if (found) return found;
  }
  return null;
}

export const addressNode = ({ ip, type, region, network, service_name, created_at }: AddressFields): object => ({
  id: ip,
  address: ip,
  type,
  region: region || "global",
  createdAt: created_at,
  network: network ? { name: network } : null,
  serviceName: service_name,
});

async function certificateNodes(query: Query, app_name: string) {
  const { certificates } = await query.read<{ certificates: CertificateFields[] }>(
    "GET /v1/apps/:app_name/certificates",
    { params: { app_name }, query: { limit: 500 } },
  );
  return certificates.map(certificateNode);
}

async function imageNode(query: Query, app_name: string, image: string): Promise<object> {
  const found = await query.read<{ digest: string; reference: string }>("GET /v1/apps/:app_name/images/resolve", {
    params: { app_name },
    query: { image },
  });
  return {
    id: found.digest,
    ref: image.split("@")[0],
    digest: found.digest,
    compressedSize: "0",
    compressedSizeFull: "0",
  };
}

const imageDetails = (machine: MachineFields | undefined): object | null =>
  machine ? { ...machine.image_ref, tag: machine.image_ref.tag ?? "", version: null } : null;
