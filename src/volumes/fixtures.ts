import type { Operation, Snapshot, Volume } from "./types.ts";

/** Valid defaults for tests. */
export function aVolume(change: Partial<Volume> = {}): Volume {
  return {
    id: "vol_1",
    org_id: "o1",
    app_id: "a1",
    app_name: "a1",
    name: "data",
    region: "local",
    zone: "0001",
    host_id: "0001",
    fstype: "ext4",
    encryption: null,
    sealed_key: null,
    created_at: 1_700_000_000_000,
    revision: 1,
    updated_at: 1_700_000_000_000,
    state: "created",
    size_gb: 3,
    attached_machine_id: null,
    needs_restart: false,
    auto_backup_enabled: true,
    snapshot_retention: 5,
    next_backup_at: null,
    base_snapshot_id: null,
    deleted_at: null,
    purge_at: null,
    error: null,
    usage: null,
    ...change,
  };
}

export function aSnapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    id: "vs_1",
    volume_id: "vol_1",
    org_id: "o1",
    app_id: "a1",
    region: "local",
    kind: "on_demand",
    status: "waiting",
    message: "",
    created_at: 1_700_000_000_000,
    updated_at: 1_700_000_000_000,
    finished_at: null,
    retention_days: 5,
    expires_at: 1_700_432_000_000,
    volume_gb: 3,
    fstype: "ext4",
    encryption: null,
    sealed_key: null,
    base_snapshot_id: null,
    size: 0,
    stored: 0,
    digest: "",
    ...change,
  };
}

export function anOperation(change: Partial<Operation> = {}): Operation {
  return {
    id: "op1",
    volume_id: "vol_1",
    host_id: "0001",
    position: 1,
    kind: "create",
    payload: {},
    tries: 0,
    ...change,
  };
}
