/** One change of the tables. Never edited once released; a correction is a new one at the end. */
export interface Migration {
  id: number;
  name: string;
  statements: readonly string[];
}

/** Migrations up to 0.1. */
export const RELEASED_MIGRATIONS: readonly Migration[] = [
  {
    id: 1,
    name: "organizations, tokens, apps, secrets, repeated requests",
    statements: [
      "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
      `CREATE TABLE orgs (
         id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
         numeric_id BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
      `CREATE TABLE tokens (
         id TEXT PRIMARY KEY, org_id TEXT REFERENCES orgs (id) ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
         secret BYTES NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, revoked_at BIGINT)`,
      "CREATE INDEX tokens_org ON tokens (org_id, id)",
      `CREATE TABLE apps (
         id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, org_id TEXT NOT NULL REFERENCES orgs (id),
         numeric_id BIGINT NOT NULL, network TEXT NOT NULL, secrets_version BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
      "CREATE INDEX apps_org ON apps (org_id, name)",
      `CREATE TABLE app_secrets (
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, name TEXT NOT NULL, sealed BYTES NOT NULL,
         digest TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (app_id, name))`,
      `CREATE TABLE idempotency (
         key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, seed BYTES NOT NULL, runner TEXT NOT NULL,
         started_at BIGINT NOT NULL, answer BYTES)`,
      "CREATE INDEX idempotency_started ON idempotency (started_at)",
    ],
  },
  {
    id: 2,
    name: "hosts, machines, their versions, metadata, events and operations",
    statements: [
      `CREATE TABLE hosts (
         id TEXT PRIMARY KEY, region TEXT NOT NULL, zone TEXT NOT NULL, cpus BIGINT NOT NULL, memory_mb BIGINT NOT NULL,
         state TEXT NOT NULL, used_cpus BIGINT NOT NULL, used_memory_mb BIGINT NOT NULL)`,
      // One row per organization: position of its newest event, and its number of machines.
      `CREATE TABLE machine_counters (
         org_id TEXT PRIMARY KEY REFERENCES orgs (id) ON DELETE CASCADE, events BIGINT NOT NULL, machines BIGINT NOT NULL)`,
      `CREATE TABLE machines (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
         app_name TEXT NOT NULL, name TEXT NOT NULL, region TEXT NOT NULL, host_id TEXT NOT NULL REFERENCES hosts (id),
         private_ip TEXT NOT NULL, created_at BIGINT NOT NULL, revision BIGINT NOT NULL, updated_at BIGINT NOT NULL,
         state TEXT NOT NULL, instance_id TEXT NOT NULL, image_ref TEXT NOT NULL, cordoned BIGINT NOT NULL,
         secrets_version BIGINT NOT NULL, pending BIGINT NOT NULL, deadline_at BIGINT, next_run_at BIGINT,
         boot TEXT, handle TEXT, snapshot BIGINT NOT NULL, started_at BIGINT, restarts BIGINT NOT NULL,
         cpus BIGINT NOT NULL, memory_mb BIGINT NOT NULL, reserved BIGINT NOT NULL,
         lease TEXT, checks TEXT NOT NULL, events TEXT NOT NULL)`,
      "CREATE UNIQUE INDEX machines_name ON machines (app_id, name) WHERE state <> 'destroyed'",
      "CREATE INDEX machines_app ON machines (app_id, state)",
      "CREATE INDEX machines_org ON machines (org_id, updated_at, id)",
      "CREATE INDEX machines_host ON machines (host_id, state)",
      "CREATE INDEX machines_alive ON machines (host_id) WHERE boot IS NOT NULL OR deadline_at IS NOT NULL OR next_run_at IS NOT NULL",
      `CREATE TABLE machine_versions (
         machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE, instance_id TEXT NOT NULL,
         created_at BIGINT NOT NULL, config TEXT NOT NULL, PRIMARY KEY (machine_id, instance_id))`,
      `CREATE TABLE machine_metadata (
         machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE, key TEXT NOT NULL, value TEXT NOT NULL,
         app_id TEXT NOT NULL, PRIMARY KEY (machine_id, key))`,
      "CREATE INDEX machine_metadata_pair ON machine_metadata (app_id, key, value, machine_id)",
      `CREATE TABLE machine_standbys (
         machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE, stands_for TEXT NOT NULL,
         PRIMARY KEY (stands_for, machine_id))`,
      "CREATE INDEX machine_standbys_own ON machine_standbys (machine_id)",
      `CREATE TABLE machine_events (
         org_id TEXT NOT NULL, seq BIGINT NOT NULL, app_id TEXT NOT NULL,
         machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE, instance_id TEXT NOT NULL, id TEXT NOT NULL,
         type TEXT NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL, timestamp BIGINT NOT NULL, request TEXT,
         PRIMARY KEY (org_id, seq))`,
      "CREATE INDEX machine_events_machine ON machine_events (machine_id, seq)",
      "CREATE INDEX machine_events_app ON machine_events (app_id, seq)",
      `CREATE TABLE machine_operations (
         id TEXT PRIMARY KEY, machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE, host_id TEXT NOT NULL,
         position BIGINT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, not_before BIGINT, begun BIGINT NOT NULL)`,
      "CREATE INDEX machine_operations_machine ON machine_operations (machine_id, position)",
      "CREATE INDEX machine_operations_host ON machine_operations (host_id)",
      `CREATE TABLE webhooks (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
         app_id TEXT REFERENCES apps (id) ON DELETE CASCADE, url TEXT NOT NULL, secret BYTES NOT NULL,
         created_at BIGINT NOT NULL, position BIGINT NOT NULL, failures BIGINT NOT NULL, retry_at BIGINT, last_error TEXT)`,
      "CREATE INDEX webhooks_org ON webhooks (org_id, id)",
    ],
  },
  {
    id: 3,
    name: "volumes, their operations, snapshots and the packs that hold them",
    statements: [
      // No foreign key to the app: data on disk must be removed before the row.
      `CREATE TABLE volumes (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL, app_id TEXT NOT NULL, app_name TEXT NOT NULL, name TEXT NOT NULL,
         region TEXT NOT NULL, zone TEXT NOT NULL, host_id TEXT NOT NULL, fstype TEXT NOT NULL, encryption TEXT,
         sealed_key BYTES, created_at BIGINT NOT NULL, revision BIGINT NOT NULL, updated_at BIGINT NOT NULL,
         state TEXT NOT NULL, size_gb BIGINT NOT NULL, attached_machine_id TEXT, needs_restart BIGINT NOT NULL,
         auto_backup_enabled BIGINT NOT NULL, snapshot_retention BIGINT NOT NULL, next_backup_at BIGINT,
         base_snapshot_id TEXT, deleted_at BIGINT, purge_at BIGINT, error TEXT, usage TEXT)`,
      "CREATE INDEX volumes_app ON volumes (app_id, name)",
      "CREATE INDEX volumes_org ON volumes (org_id)",
      "CREATE INDEX volumes_host ON volumes (host_id)",
      // A machine has at most one volume.
      "CREATE UNIQUE INDEX volumes_machine ON volumes (attached_machine_id) WHERE attached_machine_id IS NOT NULL",
      `CREATE TABLE volume_operations (
         id TEXT PRIMARY KEY, volume_id TEXT NOT NULL REFERENCES volumes (id) ON DELETE CASCADE, host_id TEXT NOT NULL,
         position BIGINT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, reads TEXT, tries BIGINT NOT NULL)`,
      "CREATE INDEX volume_operations_volume ON volume_operations (volume_id, position)",
      "CREATE INDEX volume_operations_reads ON volume_operations (reads) WHERE reads IS NOT NULL",
      // No foreign key to the volume: snapshots outlive it.
      `CREATE TABLE volume_snapshots (
         id TEXT PRIMARY KEY, volume_id TEXT NOT NULL, org_id TEXT NOT NULL, app_id TEXT NOT NULL, region TEXT NOT NULL,
         kind TEXT NOT NULL, status TEXT NOT NULL, message TEXT NOT NULL, created_at BIGINT NOT NULL,
         updated_at BIGINT NOT NULL, finished_at BIGINT, retention_days BIGINT NOT NULL, expires_at BIGINT NOT NULL,
         volume_gb BIGINT NOT NULL, fstype TEXT NOT NULL, encryption TEXT, sealed_key BYTES, base_snapshot_id TEXT,
         size BIGINT NOT NULL, stored BIGINT NOT NULL, digest TEXT NOT NULL)`,
      "CREATE INDEX volume_snapshots_volume ON volume_snapshots (volume_id, created_at)",
      "CREATE INDEX volume_snapshots_expiry ON volume_snapshots (expires_at)",
      "CREATE INDEX volume_snapshots_base ON volume_snapshots (base_snapshot_id)",
      `CREATE TABLE snapshot_packs (
         pack TEXT NOT NULL, snapshot_id TEXT NOT NULL REFERENCES volume_snapshots (id) ON DELETE CASCADE,
         PRIMARY KEY (pack, snapshot_id))`,
      "CREATE INDEX snapshot_packs_snapshot ON snapshot_packs (snapshot_id)",
    ],
  },
  {
    id: 4,
    name: "addresses of apps, certificates",
    statements: [
      `CREATE TABLE ip_assignments (
         ip TEXT NOT NULL, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, type TEXT NOT NULL, region TEXT NOT NULL,
         shared BIGINT NOT NULL, service_name TEXT, network TEXT, created_at BIGINT NOT NULL, PRIMARY KEY (app_id, ip))`,
      "CREATE UNIQUE INDEX ip_assignments_own ON ip_assignments (ip) WHERE shared = 0",
      `CREATE TABLE certificates (
         hostname TEXT PRIMARY KEY, app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, kind TEXT NOT NULL,
         state TEXT NOT NULL, chain TEXT, key BYTES, problem TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
         expires_at BIGINT)`,
      "CREATE INDEX certificates_app ON certificates (app_id, hostname)",
      "CREATE TABLE acme_accounts (directory TEXT PRIMARY KEY, key BYTES NOT NULL, url TEXT NOT NULL)",
      "CREATE TABLE proxy_words (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    ],
  },
  {
    id: 5,
    name: "connectors, their audit log, and the keys of the token issuer",
    statements: [
      `CREATE TABLE connections (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, provider TEXT NOT NULL,
         connection_type TEXT NOT NULL, provider_account_id TEXT NOT NULL, provider_account_name TEXT NOT NULL,
         provider_info TEXT NOT NULL, scopes TEXT NOT NULL, token_expires_at BIGINT, inserted_at BIGINT NOT NULL,
         updated_at BIGINT NOT NULL, user_id TEXT NOT NULL, access_policy TEXT NOT NULL, credential BYTES NOT NULL,
         revision BIGINT NOT NULL, calls BIGINT NOT NULL DEFAULT 0, denials BIGINT NOT NULL DEFAULT 0,
         failures BIGINT NOT NULL DEFAULT 0, bytes_sent BIGINT NOT NULL DEFAULT 0,
         bytes_received BIGINT NOT NULL DEFAULT 0, last_used_at BIGINT)`,
      "CREATE INDEX connections_org ON connections (org_id, inserted_at)",
      // No foreign key to the connector: the audit log outlives it.
      `CREATE TABLE connector_audit (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL, at BIGINT NOT NULL, connection_id TEXT NOT NULL,
         action TEXT NOT NULL, actor TEXT NOT NULL, method TEXT, path TEXT, status BIGINT, rule TEXT)`,
      "CREATE INDEX connector_audit_org ON connector_audit (org_id, id)",
      "CREATE INDEX connector_audit_connection ON connector_audit (connection_id, id)",
      "CREATE INDEX connector_audit_at ON connector_audit (at)",
      `CREATE TABLE oauth_states (
         state TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, provider TEXT NOT NULL,
         redirect_uri TEXT NOT NULL, scopes TEXT NOT NULL, verifier BYTES NOT NULL, created_at BIGINT NOT NULL)`,
      "CREATE INDEX oauth_states_org ON oauth_states (org_id, created_at)",
      `CREATE TABLE signing_keys (
         id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE, alg TEXT NOT NULL,
         public_jwk TEXT NOT NULL, private_key BYTES NOT NULL, created_at BIGINT NOT NULL, sign_from BIGINT NOT NULL,
         publish_until BIGINT)`,
      "CREATE INDEX signing_keys_org ON signing_keys (org_id, alg, sign_from)",
    ],
  },
  {
    id: 7,
    name: "leases of replicated databases",
    statements: [
      `CREATE TABLE db_leases (
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, name TEXT NOT NULL, revision BIGINT NOT NULL,
         term BIGINT NOT NULL, served_term BIGINT NOT NULL, node TEXT, url TEXT NOT NULL, reserved_for TEXT,
         lasts_ms BIGINT NOT NULL, PRIMARY KEY (app_id, name))`,
    ],
  },
  {
    id: 8,
    name: "releases",
    statements: [
      `CREATE TABLE releases (
         app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE, version BIGINT NOT NULL, status TEXT NOT NULL,
         description TEXT NOT NULL, strategy TEXT NOT NULL, definition TEXT NOT NULL, created_by TEXT NOT NULL,
         created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (app_id, version))`,
    ],
  },
  {
    id: 9,
    name: "hosts that join by themselves and hold leases",
    statements: [
      ...[
        "cordoned BIGINT NOT NULL DEFAULT 0",
        "node_id TEXT NOT NULL DEFAULT ''",
        "epoch BIGINT NOT NULL DEFAULT 0",
        "beat BIGINT NOT NULL DEFAULT 0",
        "lease_ms BIGINT NOT NULL DEFAULT 0",
        "handled BIGINT NOT NULL DEFAULT 0",
        "held BIGINT NOT NULL DEFAULT 0",
        "address TEXT NOT NULL DEFAULT ''",
        "facts TEXT NOT NULL DEFAULT '{}'",
        "joined_at BIGINT NOT NULL DEFAULT 0",
        "seen_at BIGINT NOT NULL DEFAULT 0",
      ].map((column) => `ALTER TABLE hosts ADD COLUMN ${column}`),
      `CREATE TABLE host_join_tokens (
         id TEXT PRIMARY KEY, hash BYTES NOT NULL, sealed_key BYTES NOT NULL, expires_at BIGINT NOT NULL)`,
      // No foreign keys: data on disk is removed whatever became of the rows.
      `CREATE TABLE host_leftovers (
         host_id TEXT NOT NULL, machine_id TEXT NOT NULL, PRIMARY KEY (host_id, machine_id))`,
      // Recent changes, for polling.
      "CREATE INDEX machines_updated ON machines (updated_at)",
    ],
  },
  {
    id: 10,
    name: "the private network between hosts",
    statements: [
      `CREATE TABLE network_peers (node_id TEXT PRIMARY KEY, underlay TEXT NOT NULL, seen_at BIGINT NOT NULL)`,
    ],
  },
  {
    id: 11,
    name: "who sends a webhook, among several",
    statements: [
      "ALTER TABLE webhooks ADD COLUMN runner TEXT NOT NULL DEFAULT ''",
      "ALTER TABLE webhooks ADD COLUMN runner_until BIGINT NOT NULL DEFAULT 0",
    ],
  },
  {
    id: 12,
    name: "hosts that are emptied, and what processes tell each other: their doors, imported images, traffic",
    statements: [
      "ALTER TABLE hosts ADD COLUMN draining BIGINT NOT NULL DEFAULT 0",
      "CREATE TABLE processes (node_id TEXT PRIMARY KEY, address TEXT NOT NULL, seen_at BIGINT NOT NULL)",
      `CREATE TABLE imported_images (
         owner TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, node_id TEXT NOT NULL, created_at BIGINT NOT NULL,
         PRIMARY KEY (owner, name))`,
      "CREATE INDEX imported_images_digest ON imported_images (digest)",
      `CREATE TABLE front_doors (
         node_id TEXT PRIMARY KEY, beat BIGINT NOT NULL, word TEXT NOT NULL, seen_at BIGINT NOT NULL)`,
    ],
  },
  {
    id: 13,
    name: "the tokens that made tokens, connectors and webhooks",
    statements: [
      "ALTER TABLE tokens ADD COLUMN parent_id TEXT",
      "ALTER TABLE connections ADD COLUMN maker_expires_at BIGINT",
      "ALTER TABLE webhooks ADD COLUMN token_id TEXT",
      `UPDATE tokens SET kind = 'connector'
         WHERE id IN (SELECT provider_account_id FROM connections WHERE connection_type = 'internal')`,
    ],
  },
  {
    id: 14,
    name: "the image of a release",
    statements: ["image TEXT", "image_digest TEXT"].map((column) => `ALTER TABLE releases ADD COLUMN ${column}`),
  },
  {
    id: 15,
    name: "how the version of a machine that runs is stopped",
    statements: ["ALTER TABLE machines ADD COLUMN boot_stop_config TEXT"],
  },
];
