import type { Address } from "#core/dial.ts";
import type { BucketsSetting } from "#core/proxy-settings.ts";
import type { ImageLayer } from "#machines/runtime/image-source.ts";

/**
 * What a worker must know to serve requests: plain data, made by the control and sent app by app. A *port* is
 * an exposed port of an app, a *target* one machine that answers there.
 */
export interface AppTable {
  app_id: string;
  app_name: string;
  org_id: string;
  /** Host names it answers to, lower case; `*.name` stands for one label more. */
  hostnames: string[];
  /** Names that its wildcards do not stand for. */
  reserved: string[];
  /** Whether it is open at the address that all apps share. */
  shared: boolean;
  /** Addresses of its own. */
  addresses: string[];
  /** Who came first has a port that cannot be shared. */
  since: number;
  ports: PortTable[];
  statics: StaticTable[];
}

/** Where an app's ports are opened. */
export const addressesOf = ({ shared, addresses }: AppTable, listen_host: string): string[] => [
  ...(shared ? [listen_host] : []),
  ...addresses,
];

export interface PortTable {
  protocol: "tcp" | "udp";
  /** A range has two different ones. */
  start: number;
  end: number;
  options: PortOptions;
  targets: Target[];
  /** Machines that a request may start. */
  startable: StartableMachine[];
  /** Why nothing is there, when nothing is. */
  empty: string;
}

/** A machine that does not run. */
export interface StartableMachine {
  machine_id: string;
  region: string;
}

export interface PortOptions {
  http: boolean;
  tls: boolean;
  /** PostgreSQL's way to begin TLS. */
  pg_tls: boolean;
  proxy_protocol: 0 | 1 | 2;
  force_https: boolean;
  compress: boolean;
  h2_backend: boolean;
  pristine: boolean;
  /** Set on every answer; an empty list removes the field. */
  headers: [name: string, values: string[]][];
  idle_ms: number;
  /** For the head of a request; 0: as long as everywhere. */
  head_ms: number;
  alpn: string[];
  /** Answers server names that no app on the port has. */
  self_signed: boolean;
  min_version: "TLSv1.2" | "TLSv1.3";
  max_version: "TLSv1.2" | "TLSv1.3";
  /** The port `https://` is at, for those who are sent there. */
  https_port: number;
}

export interface Target extends Address {
  machine_id: string;
  instance_id: string;
  region: string;
  host_id: string;
  slot: number;
  /** What is counted and bounded. */
  mode: "connections" | "requests";
  soft: number;
  hard: number;
  /** Speaks HTTP/2 without TLS. */
  h2: boolean;
}

/** Files that the proxy serves itself. */
export interface StaticTable {
  prefix: string;
  source: { kind: "layers"; layers: ImageLayer[]; path: string } | { kind: "bucket"; bucket: string; path: string };
  index: string | undefined;
}

export interface Certificate {
  hostnames: string[];
  /** Names that its wildcards do not stand for. */
  reserved?: string[];
  /** PEM. */
  chain: string;
  key: string;
}

/** From the control to a worker. */
export type WorkerCommand =
  | { type: "app"; app: AppTable }
  | { type: "no app"; app_id: string }
  | { type: "certificates"; certificates: Certificate[] }
  | { type: "challenges"; answers: Record<string, string> }
  /** Why a port of a machine takes no connections, as far as that is known. */
  | { type: "unreachable"; machine_id: string; port: number; reason: string | undefined }
  | { type: "ready?"; id: number }
  /** Listens no more, finishes what it has, and ends. Patient: clients that may just be about to ask get a while. */
  | { type: "drain"; patient: boolean };

/** A port that should be open and is not. */
export interface ClosedListener {
  protocol: "tcp" | "udp";
  address: string;
  port: number;
  problem: string;
}

/** From a worker to the control. */
export type Report =
  /** Everything ordered before `id` is in place. */
  | { type: "ready"; id: number }
  | { type: "start"; app_id: string; port: number; protocol: "tcp" | "udp"; reason: string; machine_id?: string }
  /** A machine's port takes no connections: it is to be found out why. */
  | { type: "unreachable"; machine_id: string; port: number }
  | { type: "doors"; failed: ClosedListener[] }
  | { type: "counts"; counts: Count[] }
  | { type: "drained" };

/** What a counter went up by since the last time. */
export interface Count {
  name: string;
  org_id: string;
  labels: Record<string, string>;
  by: number;
  /** Of a histogram: counts per bucket, then the sum. */
  buckets?: number[];
  sum?: number;
}

export interface WorkerSettings {
  worker: number;
  listen_host: string;
  slots: SharedArrayBuffer;
  /** What the control's clock says when the worker starts. */
  monotonic_ms: number;
  /** The certificate for names that have none. */
  fallback: Certificate;
  /** So that a client that comes back to another worker can go on with its TLS session. */
  ticket_keys: Uint8Array;
  region: string;
  host_id: string;
  /** Where apps may have buckets with files. */
  buckets: BucketsSetting | undefined;
}
