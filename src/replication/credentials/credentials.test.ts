import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { credentialsSuite } from "./credentials.suite.ts";
import { MachineIdentity } from "./machine-identity.ts";
import { SharedKey } from "./shared-key.ts";

const now_ms = 1_700_000_000_000;

credentialsSuite("a shared key", async () => ({
  here: new SharedKey("key"),
  there: new SharedKey("key"),
  stranger: new SharedKey("other"),
  now_ms,
}));

/** An issuer as the platform is one: a configuration, its keys, and tokens of machines. */
async function issuer(t: TestContext) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256", use: "sig" };
  const server = createServer((request, response) => {
    const keys = request.url?.endsWith("jwks.json") === true;
    response.end(JSON.stringify(keys ? { keys: [jwk] } : { issuer: url, jwks_uri: `${url}/jwks.json` }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme`;
  const mint =
    (subject: string) =>
    (audience: string): Promise<string> =>
      new SignJWT({ sub: subject, aud: audience })
        .setProtectedHeader({ alg: "ES256", kid: "k1" })
        .setIssuer(url)
        .setIssuedAt(now_ms / 1000)
        .setExpirationTime(now_ms / 1000 + 600)
        .sign(privateKey);
  return { url, mint };
}

credentialsSuite("machine identity", async (t) => {
  const { url, mint } = await issuer(t);
  const node = (subject: string): MachineIdentity =>
    new MachineIdentity({ issuer: url, subject: "acme:web:*", mint: mint(subject) });
  return { here: node("acme:web:one"), there: node("acme:web:two"), stranger: node("acme:other:one"), now_ms };
});

credentialsSuite("machine identity, against another issuer's", async (t) => {
  const [ours, theirs] = [await issuer(t), await issuer(t)];
  const node = (mint: (audience: string) => Promise<string>): MachineIdentity =>
    new MachineIdentity({ issuer: ours.url, jwks_url: `${ours.url}/jwks.json`, subject: "acme:web:one", mint });
  const subject = "acme:web:one";
  return {
    here: node(ours.mint(subject)),
    there: node(ours.mint(subject)),
    stranger: node(theirs.mint(subject)),
    now_ms,
  };
});
