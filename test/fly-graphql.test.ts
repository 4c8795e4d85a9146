import assert from "node:assert/strict";
import { suite, test } from "node:test";
import flyAdmin from "fly-admin/dist/client.js";
import { FLY_LIMITS } from "#fly/limits.ts";
import { flyPlatform } from "./fly-listener.ts";

const config = { image: "web:1", guest: { cpus: 1, memory_mb: 256 } };

suite("Fly's GraphQL", () => {
  test("answers fly-admin, a client from npm, unmodified", async (t) => {
    const { fly, token, flies } = await flyPlatform(t);
    const client = new flyAdmin.default(token, { graphqlUrl: fly, apiUrl: fly });
    await client.App.createApp({ app_name: "web", org_slug: "personal" });
    const ip = await client.Network.allocateIpAddress({ appId: "web", type: "v6" as never });
    const address = ip.allocateIpAddress.ipAddress?.address ?? "";
    assert.match(address, /:/);
    await client.Secret.setSecrets({ appId: "web", secrets: [{ key: "COLOUR", value: "red" }], replaceAll: false });
    assert.deepEqual(
      (await flies("GET /v1/apps/web/secrets")).body.secrets.map(({ name }: { name: string }) => name),
      ["COLOUR"],
    );
    await client.Secret.unsetSecrets({ appId: "web", keys: ["COLOUR"] });
    const made = await client.Machine.createMachine({ app_name: "web", config: config as never });
    const app = await client.App.getAppDetailed("web");
    assert.deepEqual([app.name, app.organization.slug, app.ipAddresses[0]?.type], ["web", "personal", "v6"]);
    assert.equal((await client.Machine.listMachines("web"))[0]?.id, made.id);
    assert.equal((await client.Organization.getOrganization("personal")).organization?.slug, "personal");
    assert.equal((await client.Regions.getRegions()).platform.regions[0]?.code, "local");
    await client.Network.releaseIpAddress({ appId: "web", ip: address });
    // With its machine, as Fly's clients mean it.
    await client.App.deleteApp("web" as never);
    assert.equal((await flies("GET /v1/apps/web")).status, 404);
  });

  test("pages apps, finds a machine by its id, and answers what is unknown in Fly's words", async (t) => {
    const { flies, graphql } = await flyPlatform(t);
    for (const name of ["a", "b", "c"]) await flies("POST /v1/apps", { body: { name } });
    const { id } = (await flies("POST /v1/apps/b/machines", { body: { config } })).body;
    const list =
      "query($after: String) { apps(first: 2, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }";
    const first = (await graphql(list)).body.data.apps;
    assert.deepEqual(
      [first.nodes, first.pageInfo],
      [[{ name: "a" }, { name: "b" }], { hasNextPage: true, endCursor: "b" }],
    );
    const second = (await graphql(list, { after: "b" })).body.data.apps;
    assert.deepEqual([second.nodes, second.pageInfo.hasNextPage], [[{ name: "c" }], false]);
    const found = await graphql(
      "query($id: String!) { m: machine(machineId: $id) { app { name organization { id } } } }",
      { id },
    );
    assert.deepEqual(found.body.data.m, { app: { name: "b", organization: { id: "personal" } } });
    const { status, body } = await graphql('{ app(name: "no") { id } }');
    assert.deepEqual([status, body.data, body.errors[0].extensions.code], [200, { app: null }, "NOT_FOUND"]);
    assert.match(body.errors[0].message, /^Could not find App/);
  });

  test("holds to the access rules of the platform, field by field", async (t) => {
    const { ask, flies, graphql } = await flyPlatform(t);
    await ask("POST /v1/orgs", { body: { name: "other" } });
    for (const [name, org_slug] of [
      ["mine", "personal"],
      ["theirs", "other"],
    ] as const)
      await flies("POST /v1/apps", { body: { name, org_slug } });
    const { token } = (await ask("POST /v1/orgs/other/tokens", { body: { kind: "readonly" } })).body;
    const as = async (query: string) => (await graphql(query, {}, `Bearer ${token}`)).body;
    const seen = await as("{ organizations { nodes { slug } } apps { nodes { name } } }");
    assert.deepEqual(seen.data, {
      organizations: { nodes: [{ slug: "other" }] },
      apps: { nodes: [{ name: "theirs" }] },
    });
    for (const query of [
      '{ app(name: "mine") { id } }',
      '{ organization(slug: "personal") { id } }',
      '{ apps(organizationId: "personal") { nodes { id } } }',
    ])
      assert.equal((await as(query)).errors[0].extensions.code, "NOT_FOUND", query);
    for (const mutation of [
      'mutation { deleteApp(appId: "theirs") { organization { id } } }',
      'mutation { setSecrets(input: { appId: "theirs", secrets: [{ key: "A", value: "b" }] }) { app { id } } }',
      'mutation { createLimitedAccessToken(input: { organizationId: "other", name: "x", profile: "deploy_organization" }) { limitedAccessToken { token } } }',
    ])
      assert.equal((await as(mutation)).errors[0].extensions.code, "FORBIDDEN", mutation);
    assert.equal(
      (await flies("POST /graphql", { body: { query: "{ viewer { __typename } }" }, authorization: null })).status,
      401,
    );
  });

  test("makes, lists and revokes tokens", async (t) => {
    const { flies, graphql } = await flyPlatform(t);
    await flies("POST /v1/apps", { body: { name: "web" } });
    const create =
      'mutation($app: String) { createLimitedAccessToken(input: { organizationId: "personal", name: "ci", profile: "deploy", profileParams: { app_id: $app }, expiry: "1h" }) { limitedAccessToken { id tokenHeader } } }';
    const { limitedAccessToken: made } = (await graphql(create, { app: "web" })).body.data.createLimitedAccessToken;
    const use = async (target: string) => (await flies(target, { authorization: made.tokenHeader })).status;
    assert.deepEqual([await use("GET /v1/apps/web"), await use("GET /v1/apps/other")], [200, 403]);
    const gone = await graphql("mutation($id: ID) { deleteLimitedAccessToken(input: { id: $id }) { token } }", {
      id: made.id,
    });
    assert.equal(gone.body.errors, undefined);
    assert.equal(await use("GET /v1/apps/web"), 401);
  });

  test("refuses a query that is too large, too deep or asks for too much, before it runs", async (t) => {
    const { graphql } = await flyPlatform(t);
    const refused = async (query: string) => {
      const { status, body } = await graphql(query);
      return status === 200 ? body.errors[0].message : body.errors[0].message;
    };
    const deep = (levels: number): string =>
      levels === 0 ? "name" : `organization { apps { nodes { ${deep(levels - 1)} } } }`;
    assert.match(await refused(`{ app(name: "a") { ${deep(5)} } }`), /limit graphql_depth/);
    const wide = Array.from({ length: FLY_LIMITS.graphql_fields + 1 }, (_, i) => `a${i}: __typename`);
    assert.match(await refused(`{ ${wide.join(" ")} }`), /limit graphql_fields/);
    // Fragments that double what they spell out are counted, not expanded for ever.
    const doubling = Array.from({ length: 30 }, (_, i) => `fragment f${i} on Query { ...f${i + 1} ...f${i + 1} }`);
    assert.match(
      await refused(`{ ...f0 } ${doubling.join(" ")} fragment f30 on Query { __typename }`),
      /limit graphql_fields/,
    );
    assert.match(await refused(`{ ${"a ".repeat(FLY_LIMITS.graphql_tokens)} }`), /tokens/i);
    assert.match(await refused(`{ a } # ${"x".repeat(FLY_LIMITS.graphql_bytes)}`), /graphql_bytes/);
    assert.match(await refused("{ ...f } fragment f on Query { ...f }"), /Cannot spread fragment/);
    assert.match(await refused("{ nothing }"), /Cannot query field/);
    assert.match(await refused("{ broken "), /Syntax Error/);
  });
});

suite("Fly's API host", () => {
  test("answers organizations, releases and logs, and refuses the rest with an error", async (t) => {
    const { flies, ask } = await flyPlatform(t);
    await flies("POST /v1/apps", { body: { name: "web" } });
    const one = (await flies("GET /api/v1/organizations/personal")).body.organization;
    assert.deepEqual(
      [one.slug, one.billing_status, (await flies("GET /api/v1/organizations?admin=false")).body.organizations],
      ["personal", "CURRENT", [one]],
    );
    assert.equal((await flies("GET /api/v1/apps/web/releases/current")).status, 404);
    const body = { app_name: "web", build_id: 0, definition: { app: "web" }, image: "web:1", strategy: "ROLLING" };
    const { release } = (await flies("POST /api/v1/releases", { body })).body;
    assert.deepEqual([release.id, release.in_progress, release.strategy], ["web.1", true, "ROLLING"]);
    await flies(`PATCH /api/v1/releases/${release.id}`, { body: { status: "complete", metadata: {} } });
    const current = (await flies("GET /api/v1/apps/web/releases/current")).body;
    assert.deepEqual([current.status, current.stable], ["complete", true]);
    assert.deepEqual(Object.keys((await flies("GET /api/v1/releases/all_current")).body), ["web"]);
    assert.equal((await ask("GET /v1/apps/web/releases")).body.releases[0].image, "web:1");

    const { id } = (await flies("POST /v1/apps/web/machines", { body: { config } })).body;
    await flies(`GET /v1/apps/web/machines/${id}/wait?state=started`);
    const page = (await flies("GET /api/v1/apps/web/logs?next_token=&instance=")).body;
    assert.deepEqual([page.data[0].attributes.instance, page.data[0].attributes.level], [id, "info"]);
    const after = (await flies(`GET /api/v1/apps/web/logs?next_token=${page.meta.next_token}`)).body;
    assert.deepEqual([after.data, after.meta.next_token], [[], page.meta.next_token]);

    const session = await flies("POST /api/v1/cli_sessions", { body: { name: "x" }, authorization: null });
    assert.equal(session.status, 400);
    assert.match(session.body.error, /set FLY_API_TOKEN/);
    assert.match((await flies("POST /api/v1/builds/depot_builder", { body: {} })).body.error, /--local-only/);
  });
});
