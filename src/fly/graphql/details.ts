/** Releases, tokens and certificates as objects of the schema. */
import type { CertificateFields } from "../shapes.ts";

export interface ReleaseFields {
  version: number;
  status: string;
  description: string;
  message: string;
  image: string | null;
  created_by: string;
  created_at: string;
  strategy: string;
}

export const releaseNode = ({
  version,
  status,
  description,
  message,
  image,
  created_by,
  created_at,
}: ReleaseFields) => ({
  id: String(version),
  version,
  status,
  stable: status === "complete",
  inProgress: status === "running",
  reason: message,
  description,
  imageRef: image,
  evaluationId: "",
  user: userNode(created_by),
  createdAt: created_at,
});

/** There are no user accounts: the name of a token stands for the user. */
export const userNode = (name: string) => ({
  __typename: "User",
  id: name,
  name,
  email: name,
  enablePaidHobby: false,
  agreedToProviderTos: false,
});

export interface TokenFields {
  id: string;
  name: string;
  kind: string;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

/** The expiry shown for a token that does not expire. */
const NEVER = "9999-12-31T00:00:00Z";

export const tokenNode = ({ id, name, created_at, expires_at, revoked_at }: TokenFields, org_slug: string) => ({
  id: `${org_slug}.${id}`,
  name,
  token: "",
  createdAt: created_at,
  expiresAt: expires_at ?? NEVER,
  revokedAt: revoked_at,
  user: userNode(name),
});

const CLIENT_STATUS: Record<string, string> = { ready: "Ready", failed: "Failed" };

export const certificateNode = ({ ownership, problem, expires_at, ...one }: CertificateFields) => {
  const hostname = String(one["hostname"]);
  return {
    id: hostname,
    hostname,
    clientStatus: CLIENT_STATUS[one.status] ?? "Awaiting configuration",
    configured: one.configured,
    acmeDnsConfigured: false,
    acmeAlpnConfigured: one.configured,
    certificateAuthority: one.kind,
    dnsProvider: "",
    dnsValidationInstructions: ownership.proved ? "" : `set the TXT record ${ownership.name} to ${ownership.value}`,
    dnsValidationHostname: ownership.name,
    dnsValidationTarget: ownership.value,
    source: one.kind === "acme" ? "fly" : "custom",
    isApex: hostname.split(".").length === 2,
    isWildcard: hostname.startsWith("*."),
    createdAt: one["created_at"],
    issued: { nodes: expires_at ? [{ type: "ecdsa", expiresAt: expires_at }] : [] },
    validationErrors: problem
      ? [{ errorCode: null, message: problem, remediation: "", timestamp: one["updated_at"] }]
      : [],
  };
};
