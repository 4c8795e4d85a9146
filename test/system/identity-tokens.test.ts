/** Many tokens, several processes: foreign libraries believe every one, and no two are the same. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import * as jose from "jose";
import jsonwebtoken from "jsonwebtoken";
import { JwksClient } from "jwks-rsa";
import { inside, type Machine } from "../inside.ts";
import { testPlatform } from "../platform.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { runs } from "../support.ts";

type Platform = Awaited<ReturnType<typeof inside>>;

async function machinesOf(platform: Platform, count: number): Promise<Machine[]> {
  const machines: Machine[] = [];
  for (let i = 0; i < count; i++) machines.push(await platform.machine(`m-${i}`));
  return machines;
}

suite("many identity tokens", () => {
  test("every token is verified by two independent libraries, and no id repeats (J2)", async (t) => {
    const platform = await inside(t);
    // One machine may request twenty a second.
    const machines = await machinesOf(platform, runs(5, 50));
    const issuer = `${platform.base_url}/oidc/personal`;
    const keys = jose.createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`));
    const client = new JwksClient({ jwksUri: `${issuer}/.well-known/jwks.json` });
    const ids = new Set<string>();
    for (const machine of machines) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => {
          const body = JSON.stringify({ aud: "test", alg: i % 2 === 0 ? "RS256" : "ES256" });
          return platform.from(machine, "POST /v1/tokens/oidc", { body });
        }),
      );
      for (const { status, text } of answers) {
        assert.equal(status, 200, text);
        const { payload, protectedHeader } = await jose.jwtVerify(text, keys, { issuer, audience: "test" });
        const key = (await client.getSigningKey(protectedHeader.kid)).getPublicKey();
        const claims = jsonwebtoken.verify(text, key, { issuer, audience: "test", algorithms: ["RS256", "ES256"] });
        assert.deepEqual({ ...(claims as object) }, { ...payload });
        assert.equal(payload["machine_id"], machine.id);
        ids.add(String(payload.jti));
      }
    }
    assert.equal(ids.size, machines.length * 20);
    t.diagnostic(`${ids.size} tokens`);
  });

  test("processes that share a database share their signing keys, also when started together", {
    skip: postgresMissing(),
  }, async (t) => {
    const postgres = await startPostgres();
    t.after(() => postgres.stop());
    const env = {
      HANGAR_DATABASE_URL: await postgres.database(),
      HANGAR_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      HANGAR_BASE_URL: "http://machines.example",
    };
    const one = await inside(t, env);
    const other = await testPlatform(t, { ...env, HANGAR_ROLE: "control" });
    const jwks = async ({ ask }: Pick<Platform, "ask">) => (await ask("GET /oidc/personal/.well-known/jwks.json")).body;
    const [first, second] = await Promise.all([jwks(one), jwks(other)]);
    assert.deepEqual(first, second);
    assert.equal(first.keys.length, 2);
    const machine = await one.machine("web-1");
    const { text } = await one.from(machine, "POST /v1/tokens/oidc");
    const { payload } = await jose.jwtVerify(text, jose.createLocalJWKSet(await jwks(other)));
    assert.equal(payload.iss, "http://machines.example/oidc/personal");
    // The other process knows the machine by the first one's token.
    const aud = "http://machines.example/v1/gateway";
    const token = (await one.from(machine, "POST /v1/tokens/oidc", { body: JSON.stringify({ aud }) })).text;
    assert.equal((await other.ask("GET /v1/gateway/list", { token })).status, 200);
    await Promise.all([one, other].map(({ ask }) => ask("POST /v1/orgs/personal/oidc/rotate", { body: {} })));
    const rotated = await jwks(one);
    assert.equal(rotated.keys.length, 4, "of two rotations at the same time one counts");
    await Promise.all([one.close(), other.close()]);
  });
});
