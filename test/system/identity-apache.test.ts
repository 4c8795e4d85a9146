/**
 * A third-party consumer: Apache with mod_auth_openidc takes machines' tokens over HTTP, with the keys it
 * fetches from the issuer, and lets in one app's machines and no others.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { inside } from "../inside.ts";
import { tempDir, until } from "../support.ts";

const MODULES = "/usr/lib/apache2/modules";
const missing =
  spawnSync("apache2", ["-v"]).error || !existsSync(`${MODULES}/mod_auth_openidc.so`)
    ? "there is no Apache with mod_auth_openidc (apt-get install libapache2-mod-auth-openidc)"
    : undefined;

/** TLS in front of the platform, as everyone has it: Apache fetches keys over https only. */
async function tlsInFront(t: TestContext, base_url: string): Promise<string> {
  const dir = tempDir();
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1".split(" ");
  const made = spawnSync("openssl", args.concat("-keyout", key, "-out", cert));
  assert.equal(made.status, 0, String(made.stderr));
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (incoming, response) => {
    fetch(`${base_url}${incoming.url}`).then(
      async (answer) => void response.setHeader("content-type", "application/json").end(await answer.text()),
      () => void response.writeHead(502).end(),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Admits tokens of this issuer for `apache` whose subject is a machine of app web. */
async function startApache(t: TestContext, jwks: string): Promise<string> {
  const dir = tempDir();
  const port = await freePort();
  mkdirSync(join(dir, "www"));
  writeFileSync(join(dir, "www/index.html"), "let in");
  const modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "mime", "dir", "auth_openidc"];
  const user = process.getuid?.() === 0 ? "User www-data\nGroup www-data" : "";
  writeFileSync(
    join(dir, "apache.conf"),
    `ServerRoot "/usr/lib/apache2"
${modules.map((name) => `LoadModule ${name}_module modules/mod_${name}.so`).join("\n")}
${user}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${dir}/pid
ErrorLog ${dir}/error.log
LogLevel warn
DocumentRoot ${dir}/www
DirectoryIndex index.html
TypesConfig /dev/null
OIDCOAuthVerifyJwksUri ${jwks}
OIDCOAuthRemoteUserClaim sub
OIDCOAuthSSLValidateServer Off
OIDCCryptoPassphrase test
<Location />
  AuthType oauth20
  Require claim "sub~^personal:web:"
</Location>
`,
  );
  spawnSync("chmod", ["-R", "a+rX", dir]);
  const child = spawn("apache2", ["-X", "-f", join(dir, "apache.conf")], { stdio: "ignore" });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const address = `http://127.0.0.1:${port}`;
  await until("Apache answers", async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(join(dir, "error.log"), "utf8"));
    return await fetch(address).catch(() => undefined);
  });
  return address;
}

suite("identity tokens in Apache", { skip: missing }, () => {
  test("Apache admits one app's machines by their tokens, and no others", async (t) => {
    const platform = await inside(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web-evil" } });
    const [web, evil] = [await platform.machine("web-1"), await platform.machine("web-1", { app: "web-evil" })];
    const address = await startApache(
      t,
      `${await tlsInFront(t, platform.base_url)}/oidc/personal/.well-known/jwks.json`,
    );
    const visit = async (token: string): Promise<number> =>
      (await fetch(address, { headers: { authorization: `Bearer ${token}` } })).status;
    for (const alg of ["RS256", "ES256"]) {
      const wish = { body: JSON.stringify({ aud: "apache", alg }) };
      const good = (await platform.from(web, "POST /v1/tokens/oidc", wish)).text;
      assert.equal(await visit(good), 200, alg);
      assert.equal(await visit(`${good.slice(0, -8)}AAAAAAAA`), 401, "another signature");
      const other = (await platform.from(evil, "POST /v1/tokens/oidc", wish)).text;
      assert.ok([401, 403].includes(await visit(other)), "another app, whose name begins the same");
    }
    assert.equal((await fetch(address)).status, 401);
  });
});
