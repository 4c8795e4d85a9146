import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { ALL_EGRESS } from "#core/egress-policy.ts";
import { complete, sizeOf } from "./config/config.ts";
import { privateAddress } from "./names.ts";
import { prefixFromOrg } from "./private-networks.ts";
import type { Launch, Lost, Started } from "./runtime/driver.ts";
import type { Machine, MachineConfig } from "./types.ts";

/** A valid machine with defaults, for tests. */
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
    boot_stop_config: null,
    snapshot: false,
    private_ipv4: null,
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

/** A valid launch with defaults, for tests. */
export function aLaunch(change: Partial<Launch> = {}): Launch {
  const { id, name, app_name, org_id, region, instance_id, private_ip, image_ref } = aMachine();
  const config = { image: "web" };
  const about = { id, name, app_name, org_id, region, instance_id, private_ip, image_ref, config };
  return { ...about, boot: "b1", secrets: {}, egress: ALL_EGRESS, keep_rootfs: false, ...change };
}

/** A launch of a new machine with its own address in a network, from a fixture image. */
export function aLaunchIn(network: string, config: MachineConfig, change: Partial<Launch> = {}): Launch {
  const { id = randomBytes(7).toString("hex"), org_id = "o1" } = change;
  const private_ip = privateAddress({ id, network: prefixFromOrg(org_id, network), host_id: "0001" });
  const image_ref = { registry: "fixture", repository: config.image, digest: "" };
  return aLaunch({ id, org_id, private_ip, image_ref, config, ...change });
}

/** Asserts that the machine was resumed. */
export function resumedOf(found: Started | Lost): Started {
  return "lost" in found ? assert.fail(`it was not resumed: ${found.lost}`) : found;
}

/** Asserts that the machine was lost, and returns the reason. */
export const lostOf = (found: Started | Lost): string => ("lost" in found ? found.lost : assert.fail("it was resumed"));
