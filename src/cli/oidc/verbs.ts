import { systemClock } from "#core/clock.ts";
import { type Claims, type PublicJwk, splitToken, TokenRefused, verifyToken } from "#core/jwt.ts";
import { facts, table } from "../output.ts";
import { type Context, firstArgument, textOption, type Verb } from "../verb.ts";

const ORG: readonly [string, string] = ["--org <slug>", "the organization (default: personal)"];

export const oidcVerify: Verb = {
  words: "oidc verify",
  summary: "Verify an identity token with the issuer's published keys, and show its claims",
  arguments: [["<token>", "the token; - reads it from stdin"]],
  options: [["--audience <text>", "expected audience (default: any)"]],
  examples: ["hangar oidc verify $IDENTITY", "echo $IDENTITY | hangar oidc verify - --audience sts.amazonaws.com"],
  async run(context, input) {
    const argument = firstArgument(input);
    const token = argument === "-" ? (await context.stdin()).trim() : argument;
    try {
      const claims = await verified(context, token, textOption(input, "audience"));
      const pairs = Object.entries(claims).map(([name, value]): [string, string] => [name, claimText(name, value)]);
      return { data: { valid: true, claims }, text: `good\n\n${facts(pairs)}` };
    } catch (thrown) {
      if (!(thrown instanceof TokenRefused)) throw thrown;
      return { data: { valid: false, reason: thrown.message }, text: `not good: ${thrown.message}`, exit: 1 };
    }
  },
};

/** Keys come from the platform of this command, never from the issuer URL in the token. */
async function verified({ client }: Context, token: string, audience: string | undefined): Promise<Claims> {
  const { claims } = splitToken(token);
  const { org_name, aud } = claims;
  if (typeof org_name !== "string" || typeof aud !== "string") throw new TokenRefused("it is not a machine's token");
  const params = { org_slug: org_name };
  const { issuer } = await client.call("GET /oidc/:org_slug/.well-known/openid-configuration", { params });
  const { keys } = await client.call("GET /oidc/:org_slug/.well-known/jwks.json", { params });
  const expected = { issuer, audience: audience ?? aud, now_ms: systemClock.now() };
  return await verifyToken(token, keys as PublicJwk[], expected);
}

function claimText(name: string, value: unknown): string {
  if (typeof value !== "number") return String(value as string);
  return ["exp", "iat", "nbf"].includes(name) ? `${value} (${new Date(value * 1000).toISOString()})` : String(value);
}

export const oidcKeys: Verb = {
  words: "oidc keys",
  summary: "List the issuer's signing keys and their state",
  options: [ORG],
  examples: ["hangar oidc keys"],
  async run({ client }, input) {
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    const data = await client.call("GET /v1/orgs/:org_slug/oidc/keys", { params });
    return { data, text: keyTable(data.keys) };
  },
};

export const oidcRotate: Verb = {
  words: "oidc rotate",
  summary: "Rotate the signing keys now; the new ones sign in an hour",
  options: [ORG, ["--revoke", "revoke the old keys now, and every token they signed"]],
  examples: ["hangar oidc rotate"],
  async run({ client, say }, input) {
    const revoke = input.options["revoke"] === true;
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    const data = await client.call("POST /v1/orgs/:org_slug/oidc/rotate", { params, body: { revoke } });
    if (revoke) say("Tokens signed with the old keys are invalid now; machines get new ones on request.");
    return { data, text: keyTable(data.keys) };
  },
};

interface Key {
  kid: string;
  alg: string;
  state: string;
  sign_from: string;
  publish_until?: string | undefined;
}

const keyTable = (keys: readonly Key[]): string =>
  table(
    ["key", "alg", "state", "signs from", "published until"],
    keys.map((key) => [key.kid, key.alg, key.state, key.sign_from, key.publish_until ?? ""]),
  );
