import { type Migration, RELEASED_MIGRATIONS } from "./released-migrations.ts";

export const MIGRATIONS: readonly Migration[] = [
  ...RELEASED_MIGRATIONS,
  {
    id: 16,
    name: "IPv4 addresses of machines",
    statements: [
      "ALTER TABLE machines ADD COLUMN private_ipv4 TEXT",
      "CREATE TABLE network_blocks (node_id TEXT PRIMARY KEY, block BIGINT NOT NULL UNIQUE)",
    ],
  },
  {
    id: 17,
    name: "proof of host names: many apps may claim a name, one has it",
    statements: [
      `CREATE TABLE certificates_claimed (
         hostname TEXT NOT NULL, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, kind TEXT NOT NULL,
         state TEXT NOT NULL, chain TEXT, key BYTES, problem TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
         expires_at BIGINT, proved_at BIGINT, PRIMARY KEY (hostname, app_id))`,
      // Existing names stay routed.
      `INSERT INTO certificates_claimed
         (hostname, app_id, kind, state, chain, key, problem, created_at, updated_at, expires_at, proved_at)
         SELECT hostname, app_id, kind, state, chain, key, problem, created_at, updated_at, expires_at, created_at
         FROM certificates`,
      "DROP TABLE certificates",
      "ALTER TABLE certificates_claimed RENAME TO certificates",
      "CREATE INDEX certificates_app ON certificates (app_id, hostname)",
      "CREATE UNIQUE INDEX certificates_proved ON certificates (hostname) WHERE proved_at IS NOT NULL",
    ],
  },
  {
    id: 18,
    name: "prefixes of private networks",
    statements: [
      `CREATE TABLE private_networks (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, name TEXT NOT NULL, prefix TEXT UNIQUE,
         PRIMARY KEY (org_id, name))`,
      // Existing machines keep addresses derived from the organization's id.
      `INSERT INTO private_networks (org_id, name)
         SELECT DISTINCT a.org_id, a.network FROM apps a JOIN machines m ON m.app_id = a.id WHERE m.state <> 'destroyed'`,
    ],
  },
  {
    id: 19,
    name: "egress policies of apps",
    statements: ["ALTER TABLE apps ADD COLUMN egress TEXT"],
  },
  {
    id: 20,
    name: "machines that run on without their host's lease",
    statements: [
      `CREATE TABLE unfenced_machines (
         machine_id TEXT PRIMARY KEY REFERENCES machines (id) ON DELETE CASCADE, host_id TEXT NOT NULL,
         boot TEXT NOT NULL)`,
      "CREATE INDEX unfenced_machines_host ON unfenced_machines (host_id)",
    ],
  },
  {
    id: 21,
    name: "nodes of a replicated database that are in sync",
    statements: ["ALTER TABLE db_leases ADD COLUMN in_sync TEXT"],
  },
  {
    id: 22,
    name: "indexes in the order of lists",
    statements: [
      "CREATE INDEX machines_list ON machines (app_id, created_at, id)",
      "CREATE INDEX volumes_list ON volumes (app_id, created_at, id)",
    ],
  },
  {
    id: 23,
    name: "the registry: repositories, tags, manifests, blobs",
    statements: [
      `CREATE TABLE registry_blobs (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, repository TEXT NOT NULL, digest TEXT NOT NULL,
         size BIGINT NOT NULL, key TEXT NOT NULL, node_id TEXT NOT NULL, touched_at BIGINT NOT NULL,
         PRIMARY KEY (org_id, repository, digest))`,
      "CREATE INDEX registry_blobs_key ON registry_blobs (key)",
      "CREATE INDEX registry_blobs_digest ON registry_blobs (org_id, digest)",
      "CREATE INDEX registry_blobs_touched ON registry_blobs (touched_at)",
      `CREATE TABLE registry_manifests (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, repository TEXT NOT NULL, digest TEXT NOT NULL,
         media_type TEXT NOT NULL, size BIGINT NOT NULL, subject TEXT, artifact_type TEXT, annotations TEXT,
         touched_at BIGINT NOT NULL, PRIMARY KEY (org_id, repository, digest))`,
      "CREATE INDEX registry_manifests_subject ON registry_manifests (org_id, repository, subject)",
      `CREATE TABLE registry_references (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, repository TEXT NOT NULL, manifest TEXT NOT NULL,
         digest TEXT NOT NULL, PRIMARY KEY (org_id, repository, manifest, digest))`,
      "CREATE INDEX registry_references_digest ON registry_references (org_id, repository, digest)",
      `CREATE TABLE registry_tags (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, repository TEXT NOT NULL, tag TEXT NOT NULL,
         digest TEXT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (org_id, repository, tag))`,
    ],
  },
  {
    id: 24,
    name: "machines of an organization counted by rows that no two writes share",
    statements: [
      `CREATE TABLE machine_count_deltas (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, machines BIGINT NOT NULL)`,
      "CREATE INDEX machine_count_deltas_org ON machine_count_deltas (org_id, id)",
    ],
  },
  {
    id: 25,
    name: "orders of certificates: one process at a time",
    statements: [
      "CREATE TABLE certificate_orders (name TEXT PRIMARY KEY, runner TEXT NOT NULL, until BIGINT NOT NULL)",
    ],
  },
  {
    id: 26,
    name: "image builds",
    statements: [
      `CREATE TABLE builds (
         id TEXT PRIMARY KEY, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, org_id TEXT NOT NULL,
         state TEXT NOT NULL, node_id TEXT NOT NULL, dockerfile TEXT NOT NULL, target TEXT, no_cache BIGINT NOT NULL,
         files BIGINT NOT NULL, bytes BIGINT NOT NULL, image TEXT NOT NULL, digest TEXT, error TEXT,
         created_by TEXT NOT NULL, created_at BIGINT NOT NULL, started_at BIGINT, ended_at BIGINT)`,
      "CREATE INDEX builds_app ON builds (app_id, created_at, id)",
      "CREATE INDEX builds_open ON builds (node_id) WHERE state IN ('queued', 'running')",
      `CREATE TABLE build_logs (
         build_id TEXT NOT NULL REFERENCES builds (id) ON DELETE CASCADE, seq BIGINT NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (build_id, seq))`,
    ],
  },
  {
    id: 28,
    name: "why a release was made, from which commit, and why it failed",
    statements: [
      "ALTER TABLE releases ADD COLUMN message TEXT NOT NULL DEFAULT ''",
      "ALTER TABLE releases ADD COLUMN git_commit TEXT",
      "ALTER TABLE releases ADD COLUMN git_branch TEXT",
      "ALTER TABLE releases ADD COLUMN failure TEXT",
    ],
  },
  {
    id: 29,
    name: "builds cancelled through another process",
    statements: ["ALTER TABLE builds ADD COLUMN cancel_requested BIGINT NOT NULL DEFAULT 0"],
  },
  {
    id: 30,
    name: "deploys from Git",
    statements: [
      `CREATE TABLE git_settings (
         app_id TEXT PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE, deploy_branch TEXT NOT NULL)`,
    ],
  },
  {
    id: 31,
    name: "rules and the states of alerts",
    statements: [
      `CREATE TABLE rule_files (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, name TEXT NOT NULL,
         app_id TEXT REFERENCES apps (id) ON DELETE CASCADE, dialect TEXT NOT NULL, content TEXT NOT NULL,
         updated_at BIGINT NOT NULL, PRIMARY KEY (org_id, name))`,
      "CREATE INDEX rule_files_app ON rule_files (app_id)",
      `CREATE TABLE alert_claims (
         org_id TEXT PRIMARY KEY REFERENCES orgs (id) ON DELETE CASCADE, runner TEXT NOT NULL,
         runner_until BIGINT NOT NULL)`,
      `CREATE TABLE rule_states (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, file TEXT NOT NULL, group_name TEXT NOT NULL,
         state TEXT NOT NULL, PRIMARY KEY (org_id, file, group_name))`,
    ],
  },
  {
    id: 32,
    name: "runs of one-off tasks, schedules and release commands",
    statements: [
      `CREATE TABLE runs (
         id TEXT PRIMARY KEY, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, machine_id TEXT NOT NULL,
         machine_name TEXT NOT NULL, kind TEXT NOT NULL, command TEXT NOT NULL, image TEXT NOT NULL,
         instance_id TEXT NOT NULL, state TEXT NOT NULL, started_by TEXT NOT NULL, started_at BIGINT NOT NULL,
         ended_at BIGINT, exit_code BIGINT, signal BIGINT, oom_killed BIGINT NOT NULL, error TEXT)`,
      "CREATE INDEX runs_app ON runs (app_id, started_at, id)",
      "CREATE INDEX runs_machine ON runs (machine_id, started_at)",
    ],
  },
  {
    id: 33,
    name: "receivers, silences and notifications of alerts",
    statements: [
      `CREATE TABLE alert_configs (
         org_id TEXT PRIMARY KEY REFERENCES orgs (id) ON DELETE CASCADE, content BYTES NOT NULL, token_id TEXT,
         updated_at BIGINT NOT NULL)`,
      `CREATE TABLE silences (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, matchers TEXT NOT NULL,
         starts_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, created_by TEXT NOT NULL, comment TEXT NOT NULL,
         updated_at BIGINT NOT NULL)`,
      "CREATE INDEX silences_org ON silences (org_id, ends_at)",
      `CREATE TABLE alert_groups (
         org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, group_key TEXT NOT NULL, state TEXT NOT NULL,
         PRIMARY KEY (org_id, group_key))`,
      `CREATE TABLE notifications (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, receiver TEXT NOT NULL,
         integration BIGINT NOT NULL, group_key TEXT NOT NULL, body TEXT NOT NULL, created_at BIGINT NOT NULL,
         attempts BIGINT NOT NULL, retry_at BIGINT, last_error TEXT, delivered_at BIGINT)`,
      "CREATE INDEX notifications_org ON notifications (org_id, id)",
      "CREATE INDEX notifications_waiting ON notifications (org_id, id) WHERE retry_at IS NOT NULL",
      "CREATE INDEX notifications_created ON notifications (created_at)",
    ],
  },
  {
    id: 34,
    name: "preview apps",
    statements: [
      `CREATE TABLE preview_settings (
         app_id TEXT PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE, enabled BIGINT NOT NULL, days BIGINT NOT NULL,
         most BIGINT NOT NULL, secrets TEXT NOT NULL)`,
      `CREATE TABLE previews (
         id TEXT PRIMARY KEY, parent_id TEXT NOT NULL, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
         branch TEXT NOT NULL, app_name TEXT NOT NULL, state TEXT NOT NULL, git_commit TEXT, copied TEXT NOT NULL,
         created_by TEXT NOT NULL, created_at BIGINT NOT NULL, pushed_at BIGINT NOT NULL, settled_at BIGINT NOT NULL,
         UNIQUE (parent_id, branch))`,
      "CREATE INDEX previews_org ON previews (org_id)",
      `CREATE TABLE preview_tokens (
         preview_id TEXT NOT NULL REFERENCES previews (id) ON DELETE CASCADE,
         token_id TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE, PRIMARY KEY (preview_id, token_id))`,
    ],
  },
  {
    id: 35,
    name: "deploys of what is pushed to repositories elsewhere",
    statements: [
      `CREATE TABLE git_webhooks (
         id TEXT PRIMARY KEY, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, repository TEXT NOT NULL,
         username TEXT NOT NULL, password BYTES, secret BYTES NOT NULL, token BYTES NOT NULL, token_id TEXT NOT NULL,
         created_by TEXT NOT NULL, created_at BIGINT NOT NULL)`,
      "CREATE INDEX git_webhooks_app ON git_webhooks (app_id)",
      `CREATE TABLE git_deliveries (
         id TEXT PRIMARY KEY, webhook_id TEXT NOT NULL REFERENCES git_webhooks (id) ON DELETE CASCADE,
         node_id TEXT NOT NULL, delivery TEXT NOT NULL, digest TEXT NOT NULL, event TEXT NOT NULL, branch TEXT,
         action TEXT NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL, git_commit TEXT, received_at BIGINT NOT NULL,
         ended_at BIGINT, UNIQUE (webhook_id, digest))`,
      "CREATE INDEX git_deliveries_open ON git_deliveries (node_id) WHERE state IN ('queued', 'running')",
    ],
  },
  {
    id: 36,
    name: "leases of releases",
    statements: [
      "ALTER TABLE releases ADD COLUMN lease_ms BIGINT",
      // Deploys of earlier versions did not renew their releases: those that were killed are still running.
      "UPDATE releases SET lease_ms = 600000 WHERE status = 'running'",
      "CREATE INDEX releases_leased ON releases (app_id, version) WHERE status = 'running' AND lease_ms IS NOT NULL",
    ],
  },
  {
    id: 37,
    name: "text of machines for searches",
    statements: [
      `CREATE TABLE machine_search (
         machine_id TEXT PRIMARY KEY REFERENCES machines (id) ON DELETE CASCADE, org_id TEXT NOT NULL,
         created_at BIGINT NOT NULL, text TEXT NOT NULL)`,
      "CREATE INDEX machine_search_list ON machine_search (org_id, created_at, machine_id)",
      // The image as registry/repository:tag, of the JSON of its reference; the next version writes it as it is given.
      `INSERT INTO machine_search (machine_id, org_id, created_at, text)
         SELECT id, org_id, created_at, lower(name || ' ' || id || ' ' || app_name || ' ' || region || ' ' || private_ip || ' ' ||
           replace(replace(replace(image_ref, '{"registry":"', ''), '","repository":"', '/'), '","tag":"', ':'))
         FROM machines`,
    ],
  },
  {
    id: 38,
    name: "secret keys of apps",
    statements: [
      `CREATE TABLE secret_keys (
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, name TEXT NOT NULL, type TEXT NOT NULL,
         sealed BYTES NOT NULL, public_key BYTES, version BIGINT NOT NULL, created_at BIGINT NOT NULL,
         updated_at BIGINT NOT NULL, PRIMARY KEY (app_id, name))`,
    ],
  },
  {
    id: 39,
    name: "progress of builds and deploys, and those of an organization",
    statements: [
      "ALTER TABLE builds ADD COLUMN step TEXT",
      "CREATE INDEX builds_org ON builds (org_id, created_at, id)",
      "ALTER TABLE releases ADD COLUMN progress TEXT",
      "CREATE INDEX releases_running ON releases (created_at, app_id, version) WHERE status = 'running'",
    ],
  },
  {
    id: 40,
    name: "sprites",
    statements: [
      `CREATE TABLE sprite_apps (
         org_id TEXT PRIMARY KEY REFERENCES orgs (id) ON DELETE CASCADE,
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE)`,
      `CREATE TABLE sprites (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, name TEXT NOT NULL, machine_id TEXT NOT NULL,
         state TEXT NOT NULL, settings TEXT NOT NULL, first_labels TEXT NOT NULL, url_auth TEXT NOT NULL,
         private_access TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)`,
      "CREATE UNIQUE INDEX sprites_name ON sprites (org_id, name)",
      "CREATE INDEX sprites_app ON sprites (app_id)",
      "CREATE INDEX sprites_machine ON sprites (machine_id)",
      "CREATE INDEX sprites_unfinished ON sprites (state, updated_at) WHERE state <> 'ready'",
    ],
  },
  {
    id: 41,
    name: "log drains",
    statements: [
      `CREATE TABLE log_drains (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
         app_id TEXT REFERENCES apps (id) ON DELETE CASCADE, kind TEXT NOT NULL, target BYTES NOT NULL,
         address TEXT NOT NULL, since BIGINT NOT NULL, created_at BIGINT NOT NULL, token_id TEXT NOT NULL)`,
      "CREATE INDEX log_drains_org ON log_drains (org_id, id)",
      `CREATE TABLE log_drain_states (
         drain_id TEXT NOT NULL REFERENCES log_drains (id) ON DELETE CASCADE, host_id TEXT NOT NULL,
         sent BIGINT NOT NULL, refused BIGINT NOT NULL, lost_gaps BIGINT NOT NULL, lost_bytes BIGINT NOT NULL,
         oldest_at BIGINT, last_success_at BIGINT, last_error TEXT, failures BIGINT NOT NULL, updated_at BIGINT NOT NULL,
         PRIMARY KEY (drain_id, host_id))`,
    ],
  },
];

/** All tables with data, parents before children: the order of a restore. */
export const TABLES = [
  "meta",
  "orgs",
  "tokens",
  "apps",
  "app_secrets",
  "secret_keys",
  "private_networks",
  "idempotency",
  "hosts",
  "host_leftovers",
  "machine_counters",
  "machine_count_deltas",
  "machines",
  "machine_versions",
  "machine_metadata",
  "machine_standbys",
  "machine_search",
  "unfenced_machines",
  "machine_events",
  "machine_operations",
  "webhooks",
  "ip_assignments",
  "certificates",
  "acme_accounts",
  "proxy_words",
  "releases",
  "volumes",
  "volume_operations",
  "volume_snapshots",
  "snapshot_packs",
  "connections",
  "connector_audit",
  "oauth_states",
  "signing_keys",
  "db_leases",
  "imported_images",
  "registry_blobs",
  "registry_manifests",
  "registry_references",
  "registry_tags",
  "builds",
  "build_logs",
  "git_settings",
  "rule_files",
  "alert_claims",
  "rule_states",
  "runs",
  "alert_configs",
  "silences",
  "alert_groups",
  "notifications",
  "preview_settings",
  "previews",
  "preview_tokens",
  "git_webhooks",
  "git_deliveries",
  "sprite_apps",
  "sprites",
  "log_drains",
  "log_drain_states",
] as const;
