/** Descriptions of command groups, and aliases of words that are typed often. */

export const NOUNS: Record<string, string> = {
  auth: "Show the current token and who it belongs to",
  tokens: "Create, narrow, inspect and revoke API tokens",
  orgs: "Manage organizations",
  apps: "Manage apps",
  secrets: "Manage an app's secrets",
  runs: "Show one-off tasks, scheduled runs and release commands",
  releases: "List, show and compare releases",
  images: "Manage container images",
  builds: "Show and cancel image builds",
  git: "Deploy by git push",
  previews: "Preview apps: branches that are deployed as apps of their own",
  proxy: "Forward ports to machines, and reload the edge proxy",
  import: "Bring apps over from elsewhere",
  registry: "Push images to the platform's own registry",
  machines: "Manage machines",
  connectors: "Manage connectors: APIs that machines call through the gateway",
  oidc: "Identity tokens (OIDC) of machines",
  volumes: "Manage volumes",
  snapshots: "Manage volume snapshots",
  metrics: "Query metrics in MetricsQL or PromQL",
  alerts: "Alerting and recording rules, and the alerts that fire",
  webhooks: "Manage webhooks for machine events",
  drains: "Send log lines to Loki, VictoriaLogs, OTLP or syslog",
  postgres: "Run PostgreSQL in a machine",
  sqlite: "Replicate the SQLite databases of an app, whatever its image",
  ips: "Manage IP addresses of apps; an app without one is not public",
  egress: "Manage egress policies: what machines may reach",
  certs: "Manage host names and TLS certificates",
  hosts: "Manage hosts",
  regions: "List regions",
  db: "Replicated SQLite",
  context: "Switch between platforms",
  service: "Run the platform as a systemd service",
};

/** Aliases; the first one is shown in the help. `destroy` and `delete` are accepted for machines and apps alike. */
const ALIASES: Record<string, readonly string[]> = {
  machines: ["m", "machine"],
  apps: ["app"],
  orgs: ["org"],
  volumes: ["volume"],
  secrets: ["secret"],
  images: ["image"],
  tokens: ["token"],
  releases: ["release"],
  alerts: ["alert"],
  previews: ["preview"],
  certs: ["cert"],
  list: ["ls"],
  delete: ["rm", "destroy"],
  destroy: ["rm", "delete"],
  remove: ["rm"],
};

export const aliasesOf = (word: string): readonly string[] => ALIASES[word] ?? [];

/** Whether a word that was typed is this word of a command, or stands for it. */
export const isWord = (typed: string, word: string): boolean => typed === word || aliasesOf(word).includes(typed);
