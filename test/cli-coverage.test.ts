/** Whatever the API can do, the command can do: each row of the API is asked by a verb, or has its reason here. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testPlatform } from "./platform.ts";

const root = join(import.meta.dirname, "..");

/** Rows that no verb asks, with what does instead. */
const WITHOUT_VERB: Record<string, string> = {
  "GET /": "the dashboard, for browsers; `hangar dashboard` prints the link",
  "GET /healthz": "for whoever watches processes; `hangar doctor` asks /readyz",
  "GET /docs": "the API for readers; `hangar explain` is about fields",
  "POST /v1/tokens/sign_in": "the other end of the link that `hangar dashboard` prints",
  "POST /v1/apps/:app_name/deployments":
    "for who has no terminal; `hangar deploy`, `rollback` and `scale` do it themselves",
  "POST /v1/tokens/authorize": "the dashboard's; `hangar tokens inspect --can` decides without the platform",
  "GET /v1/apps/:app_name/secrets/:secret_name": "one of many; `hangar secrets list`",
  "POST /v1/apps/:app_name/secrets/:secret_name": "one of many; `hangar secrets set` sets several at once",
  "DELETE /v1/apps/:app_name/secrets/:secret_name": "one of many; `hangar secrets unset` removes several at once",
  "PUT /v1/apps/:app_name/machines/:machine_id/metadata":
    "all at once; `hangar machines metadata` changes what is named",
  "GET /v1/apps/:app_name/machines/:machine_id/metadata/:key": "one of many; `hangar machines metadata`",
  "DELETE /v1/apps/:app_name/certificates/:hostname/acme": "`hangar certs remove` removes either kind",
  "DELETE /v1/apps/:app_name/certificates/:hostname/custom": "`hangar certs remove` removes either kind",
  "GET /v1/oauth/:provider/callback": "where a provider sends a browser back to; `hangar connectors finish`",
  "GET /v1/gateway/list": "for machines, which have no command; `hangar connectors list`",
};

/** Whole parts that are spoken by other programs. */
const FOR_PROGRAMS: readonly [RegExp, string][] = [
  [/^\w+ \/v1\/gateway\/:provider\//, "calls of machines, passed on to providers; `hangar connectors test` tries one"],
  [
    /^\w+ \/v1\/sprites/,
    "the API of the Sprites SDK, for programs; the machine of a sprite has `hangar machines` and `hangar ssh`",
  ],
  [/^\w+ \/v2\/\*$/, "the OCI distribution API, for docker, podman, skopeo and crane; `hangar registry list`"],
  [/^\w+ \/git\/\*$/, "Git's own protocol, for git; `hangar git remote` prints the address"],
  [/^POST \/prometheus\//, "the same questions as a form, for Grafana and Prometheus; pushes of other programs"],
  [/^POST .*\/git\/webhooks\/:git_webhook_id$/, "events of GitHub, Gitea and Forgejo; `hangar git deliveries`"],
  [
    /^GET \/prometheus\/:org_slug\/(federate|api\/v1\/(export|labels|metadata|rules|alerts|alertmanagers|query_exemplars|format_query|parse_query|targets\/metadata|scrape_pools|notifications|status\/(buildinfo|config|flags|runtimeinfo|walreplay)))$/,
    "what Grafana and Prometheus ask",
  ],
  [
    /^POST .*\/db_leases\/:lease_name\/(acquire|renew|release)$/,
    "elections among nodes; `hangar db promote` moves a primary",
  ],
];

/** Routes that the sources in a folder name, also those put together from a path and a method. */
function namedIn(folder: string): Set<string> {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  const sources = files
    .filter((file) => file.endsWith(".ts") && !file.endsWith("api.ts") && !file.endsWith(".test.ts"))
    .map((file) => readFileSync(join(root, folder, file), "utf8"));
  const found = sources.flatMap((source) => {
    const paths = new Map(
      [...source.matchAll(/const (\w+) = "(\/[^"]+)"/g)].map(([, name = "", path = ""]) => [name, path]),
    );
    const verbs = [...(/^type Action = (.*);$/m.exec(source)?.[1] ?? "").matchAll(/"(\w+)"/g)].map(
      ([, verb = ""]) => verb,
    );
    const whole = source.replaceAll(/\$\{(\w+)\}/g, (text, name: string) => paths.get(name) ?? text);
    const each = verbs.map((verb) => whole.replaceAll(/\$\{verb\}/g, verb));
    return [...[whole, ...each].join("\n").matchAll(/["`]((?:GET|POST|PUT|PATCH|DELETE) \/[^"`]*)["`]/g)].map(
      ([, route = ""]) => route,
    );
  });
  return new Set(found);
}

const isForPrograms = (route: string): boolean => FOR_PROGRAMS.some(([pattern]) => pattern.test(route));

test("every API route has a CLI command, or a reason why not", async (t) => {
  const { rows } = await testPlatform(t);
  const named = new Set([...namedIn("src/cli"), ...namedIn("src/client")]);
  const all = rows.map(({ method, path }) => `${method} ${path}`);
  const missing = all.filter((route) => !named.has(route) && !WITHOUT_VERB[route] && !isForPrograms(route));
  assert.deepEqual(missing, []);
  const needless = Object.keys(WITHOUT_VERB).filter((route) => named.has(route) || !all.includes(route));
  assert.deepEqual(needless, [], "these have a verb, or are no rows");
  for (const [pattern, reason] of FOR_PROGRAMS)
    assert(
      all.some((route) => pattern.test(route)),
      reason,
    );
});
