/**
 * npm run docs: generates files from the code. With --check it writes nothing and lists the files that are not
 * up to date; a test runs that.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALERT_LIMITS } from "#alerts/limits.ts";
import { BUILD_LIMITS } from "#builds/limits.ts";
import type { Verb } from "#cli/verb.ts";
import { allVerbs } from "#cli/verbs.ts";
import { CONNECTOR_LIMITS } from "#connectors/limits.ts";
import { CATALOGUE } from "#core/error-catalogue.ts";
import { LIMITS } from "#core/limits.ts";
import { envName, flagName, readSettings, SETTINGS } from "#core/settings.ts";
import { DEPLOYMENT_LIMITS } from "#deployments/limits.ts";
import { IMAGE_LIMITS } from "#drivers/images/limits.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { FLY_LIMITS } from "#fly/limits.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import { HOST_LIMITS } from "#hosts/limits.ts";
import type { Row } from "#http/route.ts";
import { IDENTITY_LIMITS } from "#identity/limits.ts";
import { DEADLINES_MS, EVENT_TYPES, next, STATES, type Trigger } from "#machines/lifecycle/states.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { BUILTIN_LIMITS } from "#metrics/builtin/limits.ts";
import { ENGINE_LIMITS } from "#metrics/engine/limits.ts";
import { QUERY_LIMITS } from "#metrics/promql/limits.ts";
import { PUSH_LIMITS } from "#metrics/push/limits.ts";
import { REMOTE_LIMITS } from "#metrics/remote/limits.ts";
import { SCRAPE_LIMITS } from "#metrics/scrape/limits.ts";
import { TSDB_LIMITS } from "#metrics/tsdb/limits.ts";
import { NETWORK_LIMITS } from "#network/limits.ts";
import { PROXY_LIMITS } from "#proxy/limits.ts";
import { REGISTRY_LIMITS } from "#registry/limits.ts";
import { REPLICATION_LIMITS } from "#replication/limits.ts";
import { SPRITE_LIMITS } from "#sprites/limits.ts";
import { VOLUME_LIMITS } from "#volumes/limits.ts";
import { next as nextVolume, STATES as VOLUME_STATES } from "#volumes/states.ts";
import { startPlatform } from "../src/platform.ts";
import { fieldsPage } from "./fields-page.ts";
import { named, typeOf } from "./schema-types.ts";

const root = join(import.meta.dirname, "..");

async function allRows(): Promise<readonly Row[]> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-docs-"));
  try {
    const platform = await startPlatform(
      readSettings([], {
        HANGAR_DATA_DIR: dir,
        HANGAR_LISTEN: "127.0.0.1:0",
        HANGAR_LOG_LEVEL: "error",
        HANGAR_DRIVER: "sim",
      }),
    );
    await platform.close();
    return platform.rows;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function clientTypes(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const params = [...row.path.matchAll(/:(\w+)/g)].map(([, name]) => `${name}: string`);
    const answer = row.response.schema ? typeOf(row.response.schema) : row.response.type ? "string" : "undefined";
    return [
      `  /** ${row.summary}. */`,
      `  "${row.method} ${row.path}": {`,
      `    params: ${params.length > 0 ? `{ ${params.join("; ")} }` : "Record<string, never>"};`,
      `    query: ${row.query ? typeOf(row.query) : "Record<string, never>"};`,
      `    body: ${row.body ? typeOf(row.body) : "undefined"};`,
      `    answer: ${answer};`,
      "  };",
    ].join("\n");
  });
  const types = [...named].map(([name, type]) => `\nexport interface ${name} ${type}\n`);
  return `// Generated from the routes by \`npm run docs\`; do not edit.\n\n/** Every route with its parameters, body and response. */\nexport interface Api {\n${lines.join("\n")}\n}\n${types.join("")}`;
}

/** Lists, and the field of the response with the items; empty when the response is the list. */
function listFields(rows: readonly Row[]): string {
  const lines = rows.flatMap(({ method, path, pages }) => (pages ? [`  "${method} ${path}": "${pages.items}",`] : []));
  return `// Generated from the routes by \`npm run docs\`; do not edit.\n\n/** Routes with a paged list, and the response field with its items; empty when the response is the list. */\nexport const LIST_FIELDS = {\n${lines.join("\n")}\n} as const;\n`;
}

const NOTE = "<!-- Generated from the code by `npm run docs`; do not edit. -->\n\n";

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function errorsPage(): string {
  const rows = Object.entries(CATALOGUE).map(([code, { http, retryable, meaning }]) => [
    `\`${code}\``,
    String(http),
    retryable ? "yes" : "no",
    meaning,
  ]);
  return `# Errors\n\n${NOTE}An error response is JSON: \`error\` (the message), \`status\` (one of the codes below, stable),\n\`retryable\`, \`request_id\`, and optionally \`hint\` (what to do) and \`details\` (every problem with the path of its field).\n\n${table(["status", "HTTP", "retryable", "meaning"], rows)}\n`;
}

function settingsPage(): string {
  const rows = Object.entries(SETTINGS).map(([name, { default: value, words }]) => [
    `\`${envName(name)}\``,
    `\`${flagName(name)}\``,
    `\`${name}\``,
    value === "" ? "" : `\`${value}\``,
    words,
  ]);
  return `# Settings\n\n${NOTE}A flag takes precedence over the environment, the environment over the config file.\n\n${table(["environment", "flag", "config file", "default", "meaning"], rows)}\n`;
}

/** The doc comment of each limit in a file. */
function limitWords(file: string): Map<string | undefined, string | undefined> {
  const source = readFileSync(join(root, file), "utf8");
  const found = source.matchAll(/\/\*\*\s((?:(?!\*\/).)+?)\s\*\/\n {2}(\w+):/gs);
  return new Map([...found].map(([, text = "", name]) => [name, text.replaceAll(/\s+(\* )?/g, " ").trim()]));
}

function limitsPage(): string {
  const sections: [string, string, Record<string, number>][] = [
    ["The platform", "src/core/limits.ts", LIMITS],
    ["Machines", "src/machines/limits.ts", MACHINE_LIMITS],
    ["Sprites", "src/sprites/limits.ts", SPRITE_LIMITS],
    ["Containers", "src/drivers/runtime/runc/limits.ts", RUNC_LIMITS],
    ["Images", "src/drivers/images/limits.ts", IMAGE_LIMITS],
    ["Builds", "src/builds/limits.ts", BUILD_LIMITS],
    ["Git", "src/git/limits.ts", GIT_LIMITS],
    ["Deployments", "src/deployments/limits.ts", DEPLOYMENT_LIMITS],
    ["Registry", "src/registry/limits.ts", REGISTRY_LIMITS],
    ["Hosts", "src/hosts/limits.ts", HOST_LIMITS],
    ["Volumes", "src/volumes/limits.ts", VOLUME_LIMITS],
    ["Fly's clients", "src/fly/limits.ts", FLY_LIMITS],
    ["Connectors and the gateway", "src/connectors/limits.ts", CONNECTOR_LIMITS],
    ["The edge proxy", "src/proxy/limits.ts", PROXY_LIMITS],
    ["Addresses", "src/network/limits.ts", NETWORK_LIMITS],
    ["Identity tokens", "src/identity/limits.ts", IDENTITY_LIMITS],
    ["The replicated database", "src/replication/limits.ts", { ...REPLICATION_LIMITS }],
    ["Metrics: storage, per organization", "src/metrics/tsdb/limits.ts", { ...TSDB_LIMITS }],
    ["Metrics: queries", "src/metrics/promql/limits.ts", { ...QUERY_LIMITS }],
    ["Metrics: queues and memory", "src/metrics/engine/limits.ts", { ...ENGINE_LIMITS }],
    ["Metrics: built-in series", "src/metrics/builtin/limits.ts", { ...BUILTIN_LIMITS }],
    ["Alerts", "src/alerts/limits.ts", { ...ALERT_LIMITS }],
    ["Metrics: push", "src/metrics/push/limits.ts", { ...PUSH_LIMITS }],
    ["Metrics: scraping", "src/metrics/scrape/limits.ts", { ...SCRAPE_LIMITS }],
    ["Metrics: external storage", "src/metrics/remote/limits.ts", { ...REMOTE_LIMITS }],
  ];
  const text = sections.map(([title, file, limits]) => {
    const descriptions = limitWords(file);
    const rows = Object.entries(limits).map(([name, value]) => [
      `\`${name}\``,
      value.toLocaleString("en-US"),
      descriptions.get(name) ?? "",
    ]);
    return `## ${title}\n\n${table(["limit", "value", "description"], rows)}\n`;
  });
  return `# Limits\n\n${NOTE}All limits of the platform, with the names that errors use.\n\n${text.join("\n")}`;
}

function statesPage(): string {
  const triggers = Object.keys(EVENT_TYPES) as Trigger[];
  const hops = STATES.flatMap((state) =>
    triggers.flatMap((trigger) => ({ state, trigger, to: next(state, trigger) })).filter(({ to }) => to !== undefined),
  );
  const picture = hops.map(({ state, trigger, to }) => `  ${state} --> ${to}: ${trigger}`).join("\n");
  const rows = STATES.map((state) => [
    `\`${state}\``,
    DEADLINES_MS[state] === undefined ? "stable" : `transient, at most ${DEADLINES_MS[state] / 1000} s`,
    hops
      .filter((hop) => hop.state === state)
      .map(({ trigger, to }) => `${trigger} → \`${to}\``)
      .join(", "),
  ]);
  const events = triggers.map((trigger) => [trigger, `\`${EVENT_TYPES[trigger]}\``]);
  return `# Machine states\n\n${NOTE}Machine states are stable or transient. A machine that stays in a transient state for too long becomes\n\`failed\`, with an event that has the reason (\`destroying\` is retried instead).\n\n${table(["state", "", "transitions"], rows)}\n\n\`\`\`mermaid\nstateDiagram-v2\n  [*] --> created\n${picture}\n  destroyed --> [*]\n\`\`\`\n\n## Events\n\nEach transition emits one event: its type is in the table below, its status is the new state. Further types are \`launch\`\n(created), \`cordon\` and \`uncordon\`, which change no state. An \`exit\` event always has \`request.exit_event\`.\n\n${table(["transition", "type"], events)}\n`;
}

function volumeStates(): string {
  const triggers = ["done", "broke", "extend", "delete", "undelete"] as const;
  const rows = VOLUME_STATES.map((state) => [
    `\`${state}\``,
    triggers
      .flatMap((trigger) => ({ trigger, to: nextVolume(state, trigger) }))
      .filter(({ to }) => to !== undefined)
      .map(({ trigger, to }) => `${trigger} → \`${to}\``)
      .join(", "),
  ]);
  return `\n# Volume states\n\nA new volume starts as \`creating\`, a restored snapshot as \`restoring\`, a fork as \`hydrating\`. The platform triggers\n\`done\` and \`broke\`; API requests trigger the others.\n\n${table(["state", "transitions"], rows)}\n`;
}

async function cliPage(): Promise<string> {
  const list = (pairs: Verb["options"] = []): string[] => pairs.map(([name, words]) => `- \`${name}\` ${words}`);
  const sections = (await allVerbs()).map((verb) =>
    [
      `## hangar ${verb.words}`,
      `${verb.summary}.`,
      [...list(verb.arguments), ...list(verb.options)].join("\n"),
      verb.examples.map((example) => `    ${example}`).join("\n"),
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  );
  const all =
    "Every command also has `--json`, `--url`, `--token`, `--data-dir`, `--context`, `--show-request` and `--help`; commands that only read have `--watch`. The default app is that of `HANGAR_APP`, otherwise the app of `hangar.toml` or `fly.toml` in the current folder (not in parent folders); only `apps delete` and `webhooks create` have no default app. Exit codes: 0 success, 1 failed, 2 usage error, 3 not allowed, 4 not found, 5 conflict or leased, 6 timed out, 7 no capacity.";
  return `# CLI reference\n\n${NOTE}${all}\n\n${sections.join("\n\n")}\n`;
}

const rows = await allRows();
const files: Record<string, string> = {
  "src/client/api.ts": clientTypes(rows),
  "src/client/list-fields.ts": listFields(rows),
  "docs/cli.md": await cliPage(),
  "docs/errors.md": errorsPage(),
  "docs/fields.md": fieldsPage(rows, { note: NOTE, table }),
  "docs/settings.md": settingsPage(),
  "docs/limits.md": limitsPage(),
  "docs/states.md": statesPage() + volumeStates(),
};
const stale = Object.entries(files).filter(([name, content]) => {
  try {
    return readFileSync(join(root, name), "utf8") !== content;
  } catch {
    return true;
  }
});
if (process.argv.includes("--check")) {
  for (const [name] of stale) process.stderr.write(`${name} is not up to date; run npm run docs\n`);
  process.exit(stale.length > 0 ? 1 : 0);
}
for (const [name, content] of stale) {
  writeFileSync(join(root, name), content);
  process.stdout.write(`wrote ${name}\n`);
}
