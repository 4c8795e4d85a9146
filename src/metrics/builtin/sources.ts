import type { Readings } from "./fields.ts";

/**
 * Ports for the sources of built-in series: drivers read machines, the proxy counts traffic, the wiring knows machines
 * and volumes.
 */

/** The fields of a machine that metrics need. */
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
  /** Mount point and id of its volume. */
  mount?: { path: string; volume_id: string };
  /** Its own metrics endpoint. */
  metrics?: { port: number; path: string; https?: boolean; native_histograms?: boolean };
  /** Port of a hosted database. */
  postgres_port?: number;
  /** Whether it has public services. */
  serves: boolean;
}

/** Running machines of this process's hosts. */
export type Machines = () => Promise<readonly MeasuredMachine[]>;

/** Reads a running machine. Implemented by each runtime driver. */
export interface MachineStats {
  /** Undefined, or an error, when it cannot be read: then `svc_instance_up` is 0. */
  read(machine: MeasuredMachine): Promise<Readings | undefined>;
}

/** A sample with its name and all labels. */
export interface BuiltinSample {
  org_id: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
  /** A counter, which was 0 before its first sample. */
  counter?: boolean;
}

/** A source of counters and gauges, such as the proxy: returns all of them. */
export type SampleProvider = () => readonly BuiltinSample[] | Promise<readonly BuiltinSample[]>;

/** The exit of a machine's main process. */
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
