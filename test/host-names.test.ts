/** Host names between organizations, through the API and the edge proxy, with a DNS server of the test's own. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { getServers, setServers } from "node:dns";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { RCODES, readQuestion, writeAnswer } from "#network/dns/message.ts";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { selfSigned } from "#proxy/x509.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

/** A name server with these TXT records, asked by this process until the test ends. */
async function nameServer(t: TestContext): Promise<Map<string, string>> {
  const records = new Map<string, string>();
  const server = createSocket("udp4", (message, from) => {
    const question = readQuestion(message);
    if (!question) return;
    const found = records.get(question.name);
    const answer = found === undefined ? [] : [{ type: "TXT" as const, text: found }];
    const rcode = found === undefined ? RCODES.no_name : RCODES.ok;
    server.send(writeAnswer(question, rcode, answer), from.port, from.address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  const before = getServers();
  setServers([`127.0.0.1:${server.address().port}`]);
  t.after(() => {
    setServers(before);
    server.close();
  });
  return records;
}

/** Two organizations, each with an app on one port that both share; the machine of an app says its name. */
async function twoOrganizations(t: TestContext, env: Record<string, string> = {}) {
  const port = await freePort();
  const ports = new Map<string, number>();
  for (const name of ["victim", "attacker"])
    ports.set(name, (await aBackend(t, (_request, response) => response.end(name))).port);
  const apps = new Map<string, string>();
  const reach = ({ id }: { id: string }) => ({ host: "127.0.0.1", port: ports.get(apps.get(id) ?? "") ?? 1 });
  const platform = await testPlatform(t, env, { reach });
  const tokens: Record<string, string> = {};
  for (const name of ports.keys()) {
    await platform.ask("POST /v1/orgs", { body: { name } });
    tokens[name] = (await platform.ask(`POST /v1/orgs/${name}/tokens`, { body: { kind: "org" } })).body.token;
    await platform.ask("POST /v1/apps", { body: { app_name: name, org_slug: name } });
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port, handlers: ["http"] }] }];
    const body = { config: { image: "hangar/hello", services }, skip_launch: true };
    const { id } = (await platform.ask(`POST /v1/apps/${name}/machines`, { body })).body;
    apps.set(id, name);
    await platform.ask(`POST /v1/apps/${name}/machines/${id}/start`);
    await platform.ask(`GET /v1/apps/${name}/machines/${id}/wait?state=started`);
    await platform.ask(`POST /v1/apps/${name}/ip_assignments`, { body: { type: "shared_v4" } });
  }
  const says = async (host: string): Promise<string> => {
    // `fetch` sends no host of one's own choice.
    const asked = request({ host: "127.0.0.1", port, headers: { host } }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    const body = await text(response);
    return response.statusCode === 200 ? body : String(response.statusCode);
  };
  await until("both apps answer", async () => (await says("attacker.localhost")) === "attacker");
  await until("both apps answer", async () => (await says("victim.localhost")) === "victim");
  return { platform, tokens, says };
}

const claim = ({ ask }: TestPlatform, app: string, hostname: string, token?: string) => {
  const { chain: fullchain, key: private_key } = selfSigned([hostname], Date.now());
  const body = { hostname, fullchain, private_key };
  return ask(`POST /v1/apps/${app}/certificates/custom`, { body, ...(token ? { token } : {}) });
};

suite("host names between organizations", () => {
  test("a host name routes to the organization that verified it, and to none before", async (t) => {
    const records = await nameServer(t);
    const { platform, tokens, says } = await twoOrganizations(t);
    const { attacker = "", victim = "" } = tokens;
    // The attack: a name, a wildcard over it, an address, the platform's own names.
    for (const hostname of ["www.victim.example", "*.victim.example"]) {
      const { status, body } = await claim(platform, "attacker", hostname, attacker);
      assert.deepEqual([status, body.status, body.configured, body.ownership.proved], [201, "pending", false, false]);
      assert.match(body.problem, /set the TXT record _hangar-ownership\.(www\.)?victim\.example to hangar-ownership=/);
    }
    for (const hostname of ["127.0.0.1", "*.localhost", "victim.localhost", "localhost"])
      assert.deepEqual([hostname, (await claim(platform, "attacker", hostname, attacker)).status], [hostname, 422]);
    assert.deepEqual(await Promise.all(["www.victim.example", "a.victim.example"].map(says)), ["404", "404"]);
    // The owner is not kept from it.
    const own = (await claim(platform, "victim", "www.victim.example", victim)).body;
    const check = (app: string, token: string) =>
      platform.ask(`POST /v1/apps/${app}/certificates/www.victim.example/check`, { token });
    assert.match((await check("victim", victim)).body.problem, /there is no TXT record yet/);
    records.set(own.ownership.name, own.ownership.value);
    assert.equal((await check("attacker", attacker)).body.status, "pending");
    const proved = (await check("victim", victim)).body;
    assert.deepEqual([proved.status, proved.configured, proved.problem], ["ready", true, undefined]);
    await until("the name leads to its owner", async () => (await says("www.victim.example")) === "victim");
    assert.match((await check("attacker", attacker)).body.problem, /another app has proved/);
  });

  test("a full-access token skips verification, and with the setting off everyone does", async (t) => {
    const { platform, says } = await twoOrganizations(t);
    const { body } = await claim(platform, "victim", "shop.example");
    assert.deepEqual([body.status, body.ownership.proved], ["ready", true]);
    await until("it leads to the app", async () => (await says("shop.example")) === "victim");
    const trusting = await twoOrganizations(t, { HANGAR_HOSTNAME_PROOF: "off" });
    const made = await claim(trusting.platform, "victim", "shop.example", trusting.tokens["victim"]);
    assert.deepEqual([made.body.status, made.body.ownership.proved], ["ready", true]);
  });

  test("name servers that do not respond are reported as such", async (t) => {
    const records = await nameServer(t);
    const { platform, tokens } = await twoOrganizations(t);
    await claim(platform, "victim", "shop.example", tokens["victim"]);
    setServers(["127.0.0.1:9"]);
    const { status, body } = await platform.ask("POST /v1/apps/victim/certificates/shop.example/check");
    assert.deepEqual([status, records.size], [200, 0]);
    assert.match(body.problem, /the name servers did not answer \(E\w+\): set the TXT record/);
  });

  test("a host name that became the platform's own routes to no app", async (t) => {
    const { platform } = await twoOrganizations(t);
    await claim(platform, "victim", "api.shop.example");
    const services = async ({ ask }: TestPlatform) => (await ask("GET /v1/apps/victim/services")).text;
    await until("it leads to the app", async () => (await services(platform)).includes("api.shop.example"));
    await platform.close();
    const env = { HANGAR_DATA_DIR: platform.data_dir, HANGAR_BASE_URL: "https://api.shop.example" };
    const again = await testPlatform(t, env);
    await until("it is open again", async () => (await services(again)).includes("victim.localhost"));
    assert.doesNotMatch(await services(again), /api\.shop\.example/);
    assert.equal((await claim(again, "attacker", "api.shop.example")).status, 422);
  });
});
