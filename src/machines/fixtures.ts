import { complete, sizeOf } from "./config.ts";
import type { Machine, MachineConfig } from "./types.ts";

/** A valid, dull machine for tests, changed only where it matters. */
export function aMachine(change: Partial<Machine> = {}): Machine {
  const config: MachineConfig = complete(change.config ?? { image: "registry.example/web:1" });
  const { cpus, memory_mb } = sizeOf(config);
  return {
    id: "1781949c61e789",
    org_id: "o1",
    app_id: "a1",
    app_name: "web",
    name: "quiet-river-1234",
    region: "local",
    host_id: "0001",
    private_ip: "fdaa:0:1::2",
    created_at: 1_700_000_000_000,
    revision: 1,
    updated_at: 1_700_000_000_000,
    state: "created",
    instance_id: "01HF00000000000000000000V1",
    image_ref: { registry: "registry.example", repository: "web", tag: "1", digest: `sha256:${"0".repeat(64)}` },
    cordoned: false,
    secrets_version: 0,
    pending: 0,
    deadline_at: null,
    next_run_at: null,
    boot: null,
    handle: null,
    snapshot: false,
    started_at: null,
    restarts: 0,
    cpus,
    memory_mb,
    reserved: false,
    lease: null,
    checks: {},
    events: [],
    ...change,
    config,
  };
}
