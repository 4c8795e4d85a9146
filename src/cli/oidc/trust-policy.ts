/** Trust policies for third parties that admit an app's machines and no others. */
import { textOption, UsageError, type Verb } from "../verb.ts";

interface PolicyInput {
  issuer: string;
  audience: string;
  /** `org:app:*`, or one machine's. */
  subject: string;
  exact: boolean;
}

const PLATFORMS: Record<string, { audience: string; write(input: PolicyInput): string }> = {
  aws: { audience: "sts.amazonaws.com", write: aws },
  gcp: {
    audience:
      "//iam.googleapis.com/projects/PROJECT_NUMBER/locations/global/workloadIdentityPools/hangar/providers/hangar",
    write: gcp,
  },
  vault: { audience: "vault", write: vault },
};

export const oidcTrustPolicy: Verb = {
  words: "oidc trust-policy",
  summary: "Print a trust policy for AWS, GCP or Vault that admits the machines of one app",
  arguments: [["<platform>", "aws, gcp or vault"]],
  options: [
    ["-a, --app <app>", "the app"],
    ["--machine <name>", "only this machine of it"],
    ["--org <slug>", "the organization (default: personal)"],
    ["--audience <text>", "audience of the tokens (default: the platform's own)"],
  ],
  examples: [
    "hangar oidc trust-policy aws --app machinery",
    "hangar oidc trust-policy gcp --app machinery --machine web-1",
    "hangar oidc trust-policy vault --app machinery",
  ],
  async run({ client, say }, input) {
    const [name = ""] = input.args;
    const platform = Object.hasOwn(PLATFORMS, name) ? PLATFORMS[name] : undefined;
    if (!platform)
      throw new UsageError(`there are trust policies for ${Object.keys(PLATFORMS).join(", ")}, not ${name}`);
    const app = textOption(input, "app");
    if (app === undefined)
      throw new UsageError("name the app: --app web; a policy for a whole organization would trust too many machines");
    const org_slug = textOption(input, "org") ?? "personal";
    const { issuer } = await client.call("GET /oidc/:org_slug/.well-known/openid-configuration", {
      params: { org_slug },
    });
    if (!issuer.startsWith("https:"))
      say(`note: ${issuer} is not https, and no third party will fetch keys from it; set HANGAR_OIDC_ISSUER_URL`);
    const machine = textOption(input, "machine");
    // The colon after the app counts: `org:app*` would also be `org:app-of-someone-else:…`.
    const subject = `${org_slug}:${app}:${machine ?? "*"}`;
    const audience = textOption(input, "audience") ?? platform.audience;
    const text = platform.write({ issuer, audience, subject, exact: machine !== undefined });
    return { data: { issuer, audience, subject, policy: text }, text };
  },
};

function aws({ issuer, audience, subject, exact }: PolicyInput): string {
  const provider = issuer.replace(/^https?:\/\//, "");
  const condition = exact
    ? { StringEquals: { [`${provider}:aud`]: audience, [`${provider}:sub`]: subject } }
    : { StringEquals: { [`${provider}:aud`]: audience }, StringLike: { [`${provider}:sub`]: subject } };
  const statement = {
    Effect: "Allow",
    Principal: { Federated: `arn:aws:iam::ACCOUNT_ID:oidc-provider/${provider}` },
    Action: "sts:AssumeRoleWithWebIdentity",
    Condition: condition,
  };
  return JSON.stringify({ Version: "2012-10-17", Statement: [statement] }, undefined, 2);
}

function gcp({ issuer, audience, subject, exact }: PolicyInput): string {
  const test = exact ? `assertion.sub == '${subject}'` : `assertion.sub.startsWith('${subject.slice(0, -1)}')`;
  return [
    "gcloud iam workload-identity-pools providers create-oidc hangar \\",
    "  --location=global --workload-identity-pool=hangar \\",
    `  --issuer-uri='${issuer}' \\`,
    `  --allowed-audiences='${audience}' \\`,
    "  --attribute-mapping='google.subject=assertion.sub,attribute.app=assertion.app_name' \\",
    `  --attribute-condition="${test}"`,
  ].join("\n");
}

function vault({ issuer, audience, subject, exact }: PolicyInput): string {
  const role = {
    role_type: "jwt",
    user_claim: "sub",
    bound_audiences: [audience],
    ...(exact ? { bound_subject: subject } : { bound_claims_type: "glob", bound_claims: { sub: subject } }),
    token_policies: ["POLICY"],
    token_ttl: "15m",
  };
  const [, app] = subject.split(":");
  return [
    `vault write auth/jwt/config oidc_discovery_url='${issuer}' bound_issuer='${issuer}'`,
    `vault write auth/jwt/role/${app} - <<'ROLE'`,
    JSON.stringify(role, undefined, 2),
    "ROLE",
  ].join("\n");
}
