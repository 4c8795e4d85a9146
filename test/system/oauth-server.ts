/**
 * A real OAuth server (oidc-provider) with one client, whose only user says yes to everything, and an API behind
 * it that believes its tokens. Prints its address, and a line for each token it issues.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

const [redirect_uri = ""] = process.argv.slice(2);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "hangar",
        client_secret: "client-secret-canary",
        redirect_uris: [redirect_uri],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    scopes: ["openid", "offline_access", "read_api", "read_user"],
    pkce: { required: () => true },
    ttl: { AccessToken: 600, RefreshToken: 86_400, Grant: 86_400, Session: 86_400, Interaction: 600 },
    issueRefreshToken: async () => true,
    rotateRefreshToken: () => true,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, interaction) => `/say-yes/${interaction.uid}` },
    cookies: { keys: ["a key of the test's"] },
    findAccount: async (_context, accountId) => ({ accountId, claims: async () => ({ sub: accountId }) }),
  });
  const callback = provider.callback();
  const routes: [RegExp, (request: IncomingMessage, response: ServerResponse) => Promise<void>][] = [
    [/^\/say-yes\//, (request, response) => sayYes(provider, request, response)],
    [/^\/api\//, (request, response) => api(provider, request, response)],
  ];
  server.on("request", (request, response) => {
    const handle = routes.find(([pattern]) => pattern.test(request.url ?? ""))?.[1] ?? callback;
    void Promise.resolve(handle(request, response)).catch(() => void response.writeHead(500).end());
  });
  let issued = 0;
  provider.on("grant.success", () => process.stdout.write(`issued ${++issued}\n`));
  process.stdout.write(`ready ${issuer}\n`);
});

async function sayYes(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: "ada", clientId: String(params["client_id"]) });
  grant.addOIDCScope(String(params["scope"]));
  const result = { login: { accountId: "ada" }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

/** Returns the account and the token of any authenticated request. */
async function api(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const token = text && (await provider.AccessToken.find(text));
  response.setHeader("content-type", "application/json");
  if (!token) return void response.writeHead(401).end('{"error":"no token"}');
  response.end(JSON.stringify({ id: 7, username: token.accountId, token_id: token.jti.slice(0, 6) }));
}
