import type { Readings } from "./fields.ts";

/**
 * Where the built-in series come from: ports that this room names and others implement. `drivers/` read machines, the
 * proxy counts traffic, the assembly knows which machines and volumes there are.
 */

/** A machine as far as metrics are concerned. */
export interface MeasuredMachine {
  id: string;
  org_id: string;
  app_id: string;
  app: string;
  region: string;
  host: string;
  /** The `instance` label: the machine's `instance_id`. */
  instance: string;
  private_ip: string;
  private_ipv4: string | null;
  boot: string;
  /** Only the driver reads it. */
  handle: Readonly<Record<string, unknown>> | null;
  started_at: number;
  cpus: number;
  cpu_kind: string;
  memory_mb: number;
  /** Where the volume is mounted, when there is one. */
  mount?: { path: string; volume_id: string };
  /** Where it shows metrics of its own. */
  metrics?: { port: number; path: string; https?: boolean };
  /** A hosted database answers on this port. */
  postgres_port?: number;
  /** It takes requests from outside. */
  serves: boolean;
}

/** The machines of this process' hosts that run now. */
export type Machines = () => Promise<readonly MeasuredMachine[]>;

/** Reads a running machine; implemented by each runtime driver. */
export interface MachineStats {
  /** Undefined, or an error, when the machine does not report: then `svc_instance_up` is 0. */
  read(machine: MeasuredMachine): Promise<Readings | undefined>;
}

/** A number with its name and all its labels; the standard ones are among them. */
export interface BuiltinSample {
  org_id: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
  /** It goes up from 0, and was 0 before it was told for the first time. */
  counter?: boolean;
}

/** Counters and gauges that somebody keeps, such as the proxy: all of them, each time it is asked. */
export type SampleProvider = () => readonly BuiltinSample[] | Promise<readonly BuiltinSample[]>;

/** How the main process of a machine ended. */
export interface MachineExit {
  machine: Pick<MeasuredMachine, "org_id" | "app" | "region" | "host" | "instance">;
  exit_code: number;
  oom: boolean;
  vm_code: number;
  at_ms: number;
}

export interface VolumeFacts {
  org_id: string;
  app: string;
  region: string;
  host: string;
  id: string;
  size_bytes: number;
  /** 0 to 100. */
  used_pct: number;
}
