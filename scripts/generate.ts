/**
 * npm run docs: writes what is derived from the code. With --check it writes nothing and says what is not
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
import { FLY_LIMITS } from "#fly/limits.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import { HOST_LIMITS } from "#hosts/limits.ts";
import type { Row } from "#http/route.ts";
import { IDENTITY_LIMITS } from "#identity/limits.ts";
import { DEADLINES_MS, EVENT_TYPES, next, STATES, type Trigger } from "#machines/lifecycle/states.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { BUILTIN_LIMITS } from "#metrics/builtin/limits.ts";
import { QUERY_LIMITS } from "#metrics/promql/limits.ts";
import { PUSH_LIMITS } from "#metrics/push/limits.ts";
import { REMOTE_LIMITS } from "#metrics/remote/limits.ts";
import { SCRAPE_LIMITS } from "#metrics/scrape/limits.ts";
import { TSDB_LIMITS } from "#metrics/tsdb/limits.ts";
import { NETWORK_LIMITS } from "#network/limits.ts";
import { PROXY_LIMITS } from "#proxy/limits.ts";
import { REGISTRY_LIMITS } from "#registry/limits.ts";
import { REPLICATION_LIMITS } from "#replication/limits.ts";
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
  return `// Generated from the routes by \`npm run docs\`; do not edit.\n\n/** Every route: what it takes and what it answers. */\nexport interface Api {\n${lines.join("\n")}\n}\n${types.join("")}`;
}

/** Lists, and the field of the answer that holds the items; empty when the answer is the list. */
function listFields(rows: readonly Row[]): string {
  const lines = rows.flatMap(({ method, path, pages }) => (pages ? [`  "${method} ${path}": "${pages.items}",`] : []));
  return `// Generated from the routes by \`npm run docs\`; do not edit.\n\n/** Routes that answer a list in pages, and the field that holds its items; none when the answer is the list. */\nexport const LIST_FIELDS = {\n${lines.join("\n")}\n} as const;\n`;
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
  return `# Errors\n\n${NOTE}An error answer is JSON: \`error\` (what is wrong, in words), \`status\` (one of the codes below, stable),\n\`retryable\`, \`request_id\`, and where they help \`hint\` (what to do) and \`details\` (every problem with its place).\n\n${table(["status", "HTTP", "retry helps", "meaning"], rows)}\n`;
}

function settingsPage(): string {
  const rows = Object.entries(SETTINGS).map(([name, { default: value, words }]) => [
    `\`${envName(name)}\``,
    `\`${flagName(name)}\``,
    `\`${name}\``,
    value === "" ? "" : `\`${value}\``,
    words,
  ]);
  return `# Settings\n\n${NOTE}A flag wins over the environment, the environment over the config file.\n\n${table(["environment", "flag", "config file", "default", "meaning"], rows)}\n`;
}

/** What a limits file says about each of its names. */
function limitWords(file: string): Map<string | undefined, string | undefined> {
  const source = readFileSync(join(root, file), "utf8");
  const found = source.matchAll(/\/\*\*\s((?:(?!\*\/).)+?)\s\*\/\n {2}(\w+):/gs);
  return new Map([...found].map(([, text = "", name]) => [name, text.replaceAll(/\s+(\* )?/g, " ").trim()]));
}

function limitsPage(): string {
  const sections: [string, string, Record<string, number>][] = [
    ["The platform", "src/core/limits.ts", LIMITS],
    ["Machines", "src/machines/limits.ts", MACHINE_LIMITS],
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
    ["Metrics: one query", "src/metrics/promql/limits.ts", { ...QUERY_LIMITS }],
    ["Metrics: reading machines", "src/metrics/builtin/limits.ts", { ...BUILTIN_LIMITS }],
    ["Alerts", "src/alerts/limits.ts", { ...ALERT_LIMITS }],
    ["Metrics: samples that are pushed", "src/metrics/push/limits.ts", { ...PUSH_LIMITS }],
    ["Metrics: asking machines for their own", "src/metrics/scrape/limits.ts", { ...SCRAPE_LIMITS }],
    ["Metrics: an engine elsewhere", "src/metrics/remote/limits.ts", { ...REMOTE_LIMITS }],
  ];
  const text = sections.map(([title, file, limits]) => {
    const descriptions = limitWords(file);
    const rows = Object.entries(limits).map(([name, value]) => [
      `\`${name}\``,
      value.toLocaleString("en-US"),
      descriptions.get(name) ?? "",
    ]);
    return `## ${title}\n\n${table(["limit", "value", "at the bound"], rows)}\n`;
  });
  return `# Limits\n\n${NOTE}Every bound of the program, by the name its errors use.\n\n${text.join("\n")}`;
}

function statesPage(): string {
  const triggers = Object.keys(EVENT_TYPES) as Trigger[];
  const hops = STATES.flatMap((state) =>
    triggers.flatMap((trigger) => ({ state, trigger, to: next(state, trigger) })).filter(({ to }) => to !== undefined),
  );
  const picture = hops.map(({ state, trigger, to }) => `  ${state} --> ${to}: ${trigger}`).join("\n");
  const rows = STATES.map((state) => [
    `\`${state}\``,
    DEADLINES_MS[state] === undefined ? "rests" : `passes, within ${DEADLINES_MS[state] / 1000} s`,
    hops
      .filter((hop) => hop.state === state)
      .map(({ trigger, to }) => `${trigger} → \`${to}\``)
      .join(", "),
  ]);
  const events = triggers.map((trigger) => [trigger, `\`${EVENT_TYPES[trigger]}\``]);
  return `# The states of a machine\n\n${NOTE}A machine rests in some states and passes through the others; one that stays too long in a passing state becomes\n\`failed\`, with an event that says why (\`destroying\` is tried again instead).\n\n${table(["state", "", "what leads on"], rows)}\n\n\`\`\`mermaid\nstateDiagram-v2\n  [*] --> created\n${picture}\n  destroyed --> [*]\n\`\`\`\n\n## Events\n\nEvery hop is one event: its type is the word below, its status the state it leads to. Besides there are \`launch\`\n(created), \`cordon\` and \`uncordon\`, which change no state. An \`exit\` event always has \`request.exit_event\`.\n\n${table(["what happened", "type"], events)}\n`;
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
  return `\n# The states of a volume\n\nAn empty volume begins as \`creating\`, one from a snapshot as \`restoring\`, a fork as \`hydrating\`. \`done\` and \`broke\` are what\nthe platform reports; the rest is asked for.\n\n${table(["state", "what leads on"], rows)}\n`;
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
    "Every command also has `--json`, `--url`, `--token`, `--data-dir`, `--context`, `--show-request` and `--help`; those that look have `--watch`. Where no app is named it is that of `HANGAR_APP`, else the app of `hangar.toml` or `fly.toml` in this folder (not in those above it); only `apps delete` and `webhooks create` want it named. Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 not allowed, 4 not found, 5 conflict or leased, 6 timed out, 7 no room.";
  return `# The command\n\n${NOTE}${all}\n\n${sections.join("\n\n")}\n`;
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
