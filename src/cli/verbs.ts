/** All commands. Only those of the typed noun are loaded: loading all takes three times as long. */
import { isWord } from "./nouns.ts";
import type { Verb } from "./verb.ts";

type Home = () => Promise<{ VERBS: readonly Verb[] }>;

const apply: Home = () => import("./apply/verbs.ts");
const deploy: Home = () => import("./deploy/verbs.ts");
const hosts: Home = () => import("./hosts/verbs.ts");
const machines: Home = () => import("./machines/index.ts");
const network: Home = () => import("./network/index.ts");
const proxy: Home = () => import("./proxy/index.ts");
const platform: Home = () => import("./platform/index.ts");
const volumes: Home = () => import("./volumes/index.ts");

/** The nouns of all commands by help group, in the order of the help, each with its file. */
const GROUPS: Record<string, Record<string, Home>> = {
  // Typed most often; the groups below hold the others.
  "Most used:": {
    run: machines,
    launch: () => import("./launch/verbs.ts"),
    deploy,
    status: machines,
    ps: machines,
    logs: machines,
    ssh: machines,
    scale: deploy,
    secrets: () => import("./secrets/verbs.ts"),
    releases: () => import("./releases/verbs.ts"),
  },
  "Run:": { machines, runs: () => import("./runs/verbs.ts"), apps: () => import("./apps/verbs.ts") },
  "Deploy:": {
    diff: deploy,
    rollback: deploy,
    images: () => import("./images/verbs.ts"),
    registry: () => import("./registry/verbs.ts"),
    git: () => import("./git/verbs.ts"),
    previews: () => import("./previews/verbs.ts"),
    builds: () => import("./builds/verbs.ts"),
    apply,
    export: apply,
    import: () => import("./import/verbs.ts"),
  },
  "Inspect:": {
    dashboard: platform,
    top: machines,
    metrics: () => import("./metrics/index.ts"),
    alerts: () => import("./alerts/index.ts"),
    drains: () => import("./drains/verbs.ts"),
    services: network,
    requests: network,
    explain: platform,
    webhooks: () => import("./webhooks/verbs.ts"),
  },
  "Data:": {
    volumes,
    snapshots: volumes,
    df: volumes,
    gc: volumes,
    db: () => import("./db/verbs.ts"),
    postgres: () => import("./postgres/verbs.ts"),
    sqlite: () => import("./sqlite/verbs.ts"),
  },
  "Network:": { ips: network, certs: network, egress: network, proxy },
  "Access:": {
    auth: () => import("./auth/index.ts"),
    tokens: () => import("./tokens/index.ts"),
    orgs: () => import("./orgs/verbs.ts"),
    connectors: () => import("./connectors/index.ts"),
    oidc: () => import("./oidc/index.ts"),
    context: () => import("./contexts/verbs.ts"),
  },
  "Platform:": {
    up: platform,
    down: platform,
    doctor: platform,
    service: platform,
    hosts,
    regions: hosts,
    backup: platform,
    restore: platform,
    emulator: platform,
    completion: platform,
  },
};
const HOMES = Object.fromEntries(Object.values(GROUPS).flatMap((group) => Object.entries(group)));

/** The heading of the help under which a command is listed. */
export const groupOf = (first: string): string =>
  Object.entries(GROUPS).find(([, words]) => first in words)?.[0] ?? "Commands:";

const firstOf = ({ words }: Verb): string => words.split(" ")[0] ?? "";

async function beginningWith(first: string): Promise<readonly Verb[]> {
  const { VERBS } = (await HOMES[first]?.()) ?? { VERBS: [] };
  return VERBS.filter((verb) => firstOf(verb) === first);
}

/** All commands, in the order of the help. */
export async function allVerbs(): Promise<readonly Verb[]> {
  return (await Promise.all(Object.keys(HOMES).map(beginningWith))).flat();
}

/**
 * The command of this noun and verb, or all commands of the noun; all commands for an unknown noun, which may be a typo
 * or a request for help.
 */
export async function verbsFor(typed: string, next: string): Promise<readonly Verb[]> {
  const first = Object.keys(HOMES).find((word) => isWord(typed, word));
  if (first === undefined) return await allVerbs();
  const verbs = await beginningWith(first);
  // The options of other commands are not needed to parse this line.
  const named = verbs.filter(({ words }) => words.includes(" ") && isWord(next, words.split(" ")[1] ?? ""));
  return named.length > 0 ? named : verbs;
}
