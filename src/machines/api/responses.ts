import { isoTime } from "#core/clock.ts";
import type { HostService } from "#hosts/service.ts";
import { configWarnings } from "../config/config.ts";
import { checkNames } from "../config/configured-checks.ts";
import type { Leases } from "../lifecycle/lease.ts";
import { waitingReason } from "../lifecycle/outcomes.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import { hostWarnings } from "../runtime/host-warnings.ts";
import type { Lease, LoggedEvent, Machine, ShownMachine } from "../types.ts";

interface MachineResponsesParts {
  leases: Leases;
  hosts: HostService;
  driver: Pick<RuntimeDriver, "capabilities">;
}

/** Builds the JSON of machines for responses. */
export class MachineResponses {
  readonly #parts: MachineResponsesParts;

  constructor(parts: MachineResponsesParts) {
    this.#parts = parts;
  }

  /** A machine that was just created or updated, with the warnings about its config and its request. */
  changed(machine: Machine, more: readonly string[]) {
    const { hosts, driver } = this.#parts;
    const { config, host_id } = machine;
    const warnings = [...more, ...configWarnings(config), ...hostWarnings(config, hosts.seen(host_id)?.facts, driver)];
    return this.machine(machine, { warnings });
  }

  machine(machine: ShownMachine, options: { include_leases?: boolean | undefined; warnings?: string[] } = {}) {
    const lease = this.#parts.leases.live(machine);
    const { warnings = [] } = options;
    const waiting = this.#parts.hosts.leaving(machine.host_id) ? waitingReason(machine) : undefined;
    return {
      ...this.summary(machine),
      config: machine.config,
      checks: checks(machine),
      events: machine.events,
      host_status: this.#parts.hosts.status(machine.host_id),
      host: machine.host_id,
      ...(waiting === undefined ? {} : { waiting }),
      ...(lease ? { nonce: lease.nonce } : {}),
      ...(lease && options.include_leases ? { lease: publicLease(lease) } : {}),
      ...(warnings.length > 0 ? { warnings } : {}),
    };
  }

  summary(machine: ShownMachine) {
    const { id, name, state, region, instance_id, private_ip, image_ref, cordoned } = machine;
    return {
      id,
      name,
      state,
      region,
      instance_id,
      version: instance_id,
      private_ip,
      image_ref,
      created_at: isoTime(machine.created_at),
      updated_at: isoTime(machine.updated_at),
      cordoned,
    };
  }

  listed(machine: Machine) {
    const { id, name, app_name, state, region, instance_id, private_ip, config } = machine;
    const { guest, image, metadata, size } = config;
    return {
      id,
      name,
      app_name,
      state,
      region,
      version: instance_id,
      private_ip,
      host_status: this.#parts.hosts.status(machine.host_id),
      config: { image, ...(guest ? { guest } : {}), ...(size ? { size } : {}), ...(metadata ? { metadata } : {}) },
      created_at: isoTime(machine.created_at),
      updated_at: isoTime(machine.updated_at),
    };
  }

  lease(machine: Machine, { nonce, owner, description, expires_at }: Lease) {
    return {
      status: "success",
      data: { nonce, owner, description, expires_at: Math.floor(expires_at / 1000), version: machine.instance_id },
    };
  }
}

const publicLease = ({ owner, description, expires_at }: Lease) => ({
  owner,
  description,
  expires_at: Math.floor(expires_at / 1000),
});

/** Lists every configured check once the machine runs; a check without a result yet is not passing. */
function checks(machine: ShownMachine) {
  const waiting = { status: "critical", output: "waiting for the first result", updated_at: machine.updated_at };
  const names =
    machine.state === "started" || machine.state === "starting" ? checkNames(machine) : Object.keys(machine.checks);
  return Object.fromEntries(
    names.map((name) => {
      const { status, output, updated_at } = machine.checks[name] ?? waiting;
      return [name, { name, status, output, updated_at: isoTime(updated_at) }];
    }),
  );
}

export function eventResponse({ id, type, status, source, timestamp, request }: LoggedEvent) {
  return { id, type, status, source, timestamp, ...(request ? { request } : {}) };
}

export function logResponse(event: LoggedEvent) {
  const { seq, app_name, machine_id, machine_name, instance_id } = event;
  return { ...eventResponse(event), cursor: seq, app_name, machine_id, machine_name, instance_id };
}
