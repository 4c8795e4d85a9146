/** Every command. Only those that begin with the word that was typed are loaded: all of them take three times as long. */
import { isWord } from "./nouns.ts";
import type { Verb } from "./verb.ts";

type Home = () => Promise<{ VERBS: readonly Verb[] }>;

const apply: Home = () => import("./apply/verbs.ts");
const deploy: Home = () => import("./deploy/verbs.ts");
const hosts: Home = () => import("./hosts/verbs.ts");
const machines: Home = () => import("./machines/index.ts");
const network: Home = () => import("./network/index.ts");
const platform: Home = () => import("./platform/index.ts");
const volumes: Home = () => import("./volumes/index.ts");

/** The first words, in the order of the help, and where the commands that begin with them live. */
const HOMES: Record<string, Home> = {
  up: platform,
  run: machines,
  ssh: machines,
  top: machines,
  deploy,
  diff: deploy,
  scale: deploy,
  releases: deploy,
  rollback: deploy,
  export: apply,
  apply,
  explain: platform,
  dashboard: platform,
  down: platform,
  auth: () => import("./auth/index.ts"),
  tokens: () => import("./tokens/index.ts"),
  orgs: () => import("./orgs/verbs.ts"),
  apps: () => import("./apps/verbs.ts"),
  secrets: () => import("./secrets/verbs.ts"),
  images: () => import("./images/verbs.ts"),
  machines,
  volumes,
  snapshots: volumes,
  df: volumes,
  gc: volumes,
  connectors: () => import("./connectors/index.ts"),
  oidc: () => import("./oidc/index.ts"),
  logs: machines,
  metrics: () => import("./metrics/index.ts"),
  webhooks: () => import("./webhooks/verbs.ts"),
  postgres: () => import("./postgres/create.ts"),
  ips: network,
  services: network,
  egress: network,
  certs: network,
  proxy: network,
  db: () => import("./db/verbs.ts"),
  hosts,
  regions: hosts,
  doctor: platform,
  backup: platform,
  restore: platform,
  emulator: platform,
  service: platform,
  context: () => import("./contexts/verbs.ts"),
  completion: platform,
};

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
 * The command of these two words, or those that begin with the first; all of them for any other word, which may be a slip
 * or ask for help.
 */
export async function verbsFor(typed: string, next: string): Promise<readonly Verb[]> {
  const first = Object.keys(HOMES).find((word) => isWord(typed, word));
  if (first === undefined) return await allVerbs();
  const verbs = await beginningWith(first);
  // The options of its neighbours are not needed to read this line.
  const named = verbs.filter(({ words }) => words.includes(" ") && isWord(next, words.split(" ")[1] ?? ""));
  return named.length > 0 ? named : verbs;
}
