/** What the first words of commands mean, and other names of words that are typed often. */

export const NOUNS: Record<string, string> = {
  auth: "Who is calling",
  tokens: "Tokens of an organization",
  orgs: "Organizations",
  apps: "Apps",
  secrets: "An app's secrets",
  images: "Images that machines boot from",
  machines: "Machines",
  connectors: "Providers that machines may call, and who may",
  oidc: "Identity tokens of machines",
  volumes: "Disks that machines mount",
  snapshots: "What a volume held at a moment",
  metrics: "What is measured, asked in MetricsQL or PromQL",
  webhooks: "Addresses that are told what happens",
  postgres: "PostgreSQL in a machine of yours",
  ips: "Addresses of apps; an app without one is closed",
  egress: "What an app's machines may reach outside their private network",
  certs: "Host names of apps and their certificates",
  proxy: "The front door",
  hosts: "Boxes that machines run on",
  regions: "Where hosts are",
  db: "Replicated SQLite",
  context: "Platforms by name",
  service: "The platform as a service of systemd",
};

/** The first one is shown in the help. Machines are destroyed and apps deleted, but nobody should have to remember which. */
const ALIASES: Record<string, readonly string[]> = {
  machines: ["m"],
  list: ["ls"],
  delete: ["rm", "destroy"],
  destroy: ["rm", "delete"],
  remove: ["rm"],
};

export const aliasesOf = (word: string): readonly string[] => ALIASES[word] ?? [];

/** Whether a word that was typed is this word of a command, or stands for it. */
export const isWord = (typed: string, word: string): boolean => typed === word || aliasesOf(word).includes(typed);
