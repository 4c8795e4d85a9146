import { fail } from "#core/errors.ts";
import type { CertificateFields } from "../shapes.ts";
import type { Query } from "./context.ts";
import { certificateNode, type ReleaseFields, releaseNode, type TokenFields, tokenNode } from "./details.ts";
import { type AppFields, addressNode, appNode, findApp, type OrgFields, orgNode } from "./nodes.ts";

/** The field `input` of a mutation. */
interface Of<Input> {
  input: Input;
}

const given = (app_name: string, body?: unknown) => ({ params: { app_name }, body });

const secrets = async (query: Query, appId: string, values: Record<string, string | null>) => {
  await query.call("POST /v1/apps/:app_name/secrets", given(appId, { values }));
  // A change of secrets is no release here: machines get them at their next start.
  return { app: appNode(await findApp(query, appId)), release: null };
};

interface TokenInput {
  name: string;
  organizationId: string;
  profile: string;
  profileParams?: { app_id?: string; app_name?: string };
  expiry?: string;
}

async function createToken({ input }: Of<TokenInput>, query: Query) {
  const { name, organizationId: org_slug, profile, profileParams, expiry } = input;
  const wanted = { name, ...(expiry ? { expiry } : {}) };
  const app_name = profileParams?.app_name ?? profileParams?.app_id;
  type Made = TokenFields & { token: string };
  const { token, ...made } =
    profile === "deploy" && app_name
      ? await query.call<Made>("POST /v1/apps/:app_name/deploy_token", given(app_name, wanted))
      : await query.call<Made>("POST /v1/orgs/:org_slug/tokens", {
          params: { org_slug },
          body: { ...wanted, kind: kindOf(profile) },
        });
  return { limitedAccessToken: { ...tokenNode(made, org_slug), token, tokenHeader: `FlyV1 ${token}` } };
}

/** Fly's profiles of organization tokens, with the platform's kinds. */
const KINDS: Record<string, string> = { deploy_organization: "org", read_organization: "readonly" };
const kindOf = (profile: string): string =>
  KINDS[profile] ??
  fail("invalid_request", `there are no tokens of profile ${JSON.stringify(profile.slice(0, 40))} here`, {
    hint: "deploy (with an app), deploy_organization or read_organization; hangar tokens attenuate narrows one further",
  });

async function deleteToken({ input: { id } }: Of<{ id?: string }>, query: Query) {
  const [, org_slug = "", token_id = ""] = /^([^.]+)\.(.+)$/.exec(id ?? "") ?? [];
  await query.call("DELETE /v1/orgs/:org_slug/tokens/:token_id", { params: { org_slug, token_id } });
  return { token: id };
}

interface AddressInput {
  appId: string;
  type: string;
  region?: string;
  network?: string;
  serviceName?: string;
}

async function allocate({ input }: Of<AddressInput>, query: Query) {
  const { appId, type, region, network, serviceName: service_name } = input;
  const body = {
    type,
    ...(region ? { region } : {}),
    ...(network ? { network } : {}),
    ...(service_name ? { service_name } : {}),
  };
  const made = await query.call<Parameters<typeof addressNode>[0]>(
    "POST /v1/apps/:app_name/ip_assignments",
    given(appId, body),
  );
  return { app: appNode(await findApp(query, appId)), ipAddress: addressNode(made) };
}

async function release({ input }: Of<{ appId?: string; ip?: string; ipAddressId?: string }>, query: Query) {
  const { appId = "", ip = input.ipAddressId ?? "" } = input;
  await query.call("DELETE /v1/apps/:app_name/ip_assignments/:ip", { params: { app_name: appId, ip } });
  return { app: appNode(await findApp(query, appId)) };
}

/** DNS records of a host name check, which are not reported here. */
const NO_RECORDS = { aRecords: [], aaaaRecords: [], cnameRecords: [], resolvedAddresses: [] };

async function certificate(query: Query, appId: string, made: Promise<CertificateFields>) {
  return {
    certificate: certificateNode(await made),
    app: appNode(await findApp(query, appId)),
    check: NO_RECORDS,
  };
}

const noWireGuard = (): never =>
  fail(
    "invalid_request",
    "there are no WireGuard peers here; `hangar ssh`, `hangar proxy` and `hangar db` go through the API",
    {
      hint: "use those in place of fly ssh, fly proxy and fly postgres connect",
    },
  );

interface HostInput {
  appId: string;
  hostname: string;
}

export const mutations = {
  async createApp({ input }: Of<{ organizationId: string; name?: string; network?: string }>, query: Query) {
    const { organizationId: org_slug, name, network } = input;
    const body = { org_slug, name, ...(network ? { network } : {}) };
    return { app: appNode(await query.call<AppFields>("POST /v1/apps", { body })) };
  },
  async deleteApp({ appId }: { appId: string }, query: Query) {
    const { organization } = await findApp(query, appId);
    // Fly's command asks for confirmation first, and deletes machines and volumes too.
    await query.call("DELETE /v1/apps/:app_name", { params: { app_name: appId }, query: { force: true } });
    return { organization: orgNode(organization) };
  },
  setSecrets: ({ input }: Of<{ appId: string; secrets: { key: string; value: string }[] }>, query: Query) =>
    secrets(query, input.appId, Object.fromEntries(input.secrets.map(({ key, value }) => [key, value]))),
  unsetSecrets: ({ input }: Of<{ appId: string; keys: string[] }>, query: Query) =>
    secrets(query, input.appId, Object.fromEntries(input.keys.map((key) => [key, null]))),
  allocateIpAddress: allocate,
  releaseIpAddress: release,
  addCertificate: ({ appId, hostname }: HostInput, query: Query) =>
    certificate(query, appId, query.call("POST /v1/apps/:app_name/certificates/acme", given(appId, { hostname }))),
  checkCertificate: ({ input: { appId, hostname } }: Of<HostInput>, query: Query) =>
    certificate(
      query,
      appId,
      query.call("POST /v1/apps/:app_name/certificates/:hostname/check", { params: { app_name: appId, hostname } }),
    ),
  async deleteCertificate({ appId, hostname }: HostInput, query: Query) {
    const params = { app_name: appId, hostname };
    const found = query.call<CertificateFields>("GET /v1/apps/:app_name/certificates/:hostname", { params });
    const answer = await certificate(query, appId, found);
    await query.call("DELETE /v1/apps/:app_name/certificates/:hostname", { params });
    return answer;
  },
  async createRelease(
    { input }: Of<{ appId: string; image: string; strategy?: string; definition?: unknown }>,
    query: Query,
  ) {
    const { appId, image, strategy = "", definition = {} } = input;
    const body = { image, strategy: strategy.toLowerCase(), definition, description: "deploy" };
    const made = await query.call<ReleaseFields>("POST /v1/apps/:app_name/releases", given(appId, body));
    return {
      app: appNode(await findApp(query, appId)),
      release: { ...releaseNode(made), id: `${appId}.${made.version}` },
    };
  },
  async updateRelease({ input }: Of<{ releaseId: string; status: string }>, query: Query) {
    const [app_name = "", version = ""] = input.releaseId.split(".");
    const made = await query.call<ReleaseFields>("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version },
      body: { status: input.status.toLowerCase() },
    });
    return { release: { ...releaseNode(made), id: input.releaseId } };
  },
  createLimitedAccessToken: createToken,
  deleteLimitedAccessToken: deleteToken,
  async createOrganization({ input: { name } }: Of<{ name: string }>, query: Query) {
    return { organization: orgNode(await query.call<OrgFields>("POST /v1/orgs", { body: { name } })) };
  },
  async deleteOrganization({ input: { organizationId } }: Of<{ organizationId: string }>, query: Query) {
    await query.call("DELETE /v1/orgs/:org_slug", { params: { org_slug: organizationId } });
    return { deletedOrganizationId: organizationId };
  },
  ensureMachineRemoteBuilder: (): never => fail("build_refused", NO_BUILDER),
  validateWireGuardPeers: noWireGuard,
  addWireGuardPeer: noWireGuard,
  logOut: () => ({ ok: true }),
};

export const NO_BUILDER =
  "there is no builder machine to connect to: the platform builds by itself. `hangar deploy` in this folder builds and deploys; " +
  "or build with your own Docker (--local-only) and FLY_REGISTRY_HOST=ADDRESS/ORGANIZATION of the platform, or name a finished image (--image)";
