import type { Address } from "#core/dial.ts";
import type { BucketsSetting } from "#core/proxy-settings.ts";
import type { ImageLayer } from "#machines/runtime/image-source.ts";
import type { Span } from "./plane/trace/span.ts";

/**
 * The routing table of an app: plain data, built by the control thread and sent to the workers. A *port* is an exposed
 * port of an app, a *target* one machine that serves it.
 */
export interface AppTable {
  app_id: string;
  app_name: string;
  org_id: string;
  /** Host names in lower case; `*.name` covers one more label. */
  hostnames: string[];
  /** Names that its wildcards do not cover. */
  reserved: string[];
  /** Whether it uses the shared address. */
  shared: boolean;
  /** Addresses of its own. */
  addresses: string[];
  /** The oldest app gets a port that cannot be shared. */
  since: number;
  ports: PortTable[];
  statics: StaticTable[];
}

/** Addresses on which an app's ports are opened. */
export const addressesOf = ({ shared, addresses }: AppTable, listen_host: string): string[] => [
  ...(shared ? [listen_host] : []),
  ...addresses,
];

export interface PortTable {
  protocol: "tcp" | "udp";
  /** For a single port both are equal. */
  start: number;
  end: number;
  options: PortOptions;
  targets: Target[];
  /** Machines that a request may start. */
  startable: StartableMachine[];
  /** Why there is no target. */
  empty: string;
}

/** A machine that is not running. */
export interface StartableMachine {
  machine_id: string;
  region: string;
}

export interface PortOptions {
  http: boolean;
  tls: boolean;
  /** PostgreSQL's TLS negotiation. */
  pg_tls: boolean;
  proxy_protocol: 0 | 1 | 2;
  force_https: boolean;
  compress: boolean;
  h2_backend: boolean;
  pristine: boolean;
  /** Set on every response; an empty list removes the header. */
  headers: [name: string, values: string[]][];
  /** Routes whose responses are counted. */
  routes: string[];
  idle_ms: number;
  /** Timeout of the request head; 0 means the default. */
  head_ms: number;
  alpn: string[];
  /** Serves unknown server names. */
  self_signed: boolean;
  min_version: "TLSv1.2" | "TLSv1.3";
  max_version: "TLSv1.2" | "TLSv1.3";
  /** The HTTPS port for redirects. */
  https_port: number;
}

export interface Target extends Address {
  machine_id: string;
  instance_id: string;
  region: string;
  host_id: string;
  slot: number;
  /** What is counted and limited. */
  mode: "connections" | "requests";
  soft: number;
  hard: number;
  /** Uses HTTP/2 without TLS (h2c). */
  h2: boolean;
}

/** A static site that the proxy serves. */
export interface StaticTable {
  prefix: string;
  source: { kind: "layers"; layers: ImageLayer[]; path: string } | { kind: "bucket"; bucket: string; path: string };
  index: string | undefined;
}

export interface Certificate {
  hostnames: string[];
  /** Names that its wildcards do not cover. */
  reserved?: string[];
  /** PEM. */
  chain: string;
  key: string;
}

/** Messages from the control thread to a worker. */
export type WorkerCommand =
  | { type: "app"; app: AppTable }
  | { type: "no app"; app_id: string }
  | { type: "certificates"; certificates: Certificate[] }
  | { type: "challenges"; answers: Record<string, string> }
  /** Why a port of a machine refuses connections, if known. */
  | { type: "unreachable"; machine_id: string; port: number; reason: string | undefined }
  | { type: "ready?"; id: number }
  /** Stops listening, finishes requests, and exits. Patient: idle clients get some time for another request. */
  | { type: "drain"; patient: boolean };

/** A port that should be open and is not. */
export interface ClosedListener {
  protocol: "tcp" | "udp";
  address: string;
  port: number;
  problem: string;
}

/** Messages from a worker to the control thread. */
export type Report =
  /** All commands before `id` were applied. */
  | { type: "ready"; id: number }
  | { type: "start"; app_id: string; port: number; protocol: "tcp" | "udp"; reason: string; machine_id?: string }
  /** A machine's port refuses connections; requests the reason. */
  | { type: "unreachable"; machine_id: string; port: number }
  | { type: "listeners"; failed: ClosedListener[] }
  | { type: "counts"; counts: Count[] }
  | { type: "requests"; app_id: string; requests: RecentRequest[] }
  | { type: "spans"; spans: Span[]; dropped: number }
  | { type: "drained" };

/** A failed or slow request. */
export interface RecentRequest {
  /** Its arrival. */
  at_ms: number;
  method: string;
  /** Without the query. */
  path: string;
  /** 0 when the client disconnected before a response. */
  status: number;
  duration_ms: number;
  machine_id: string | null;
  request_id: string;
  trace_id: string | null;
  /** Why it failed, when the machine did not say so itself. */
  reason: string | null;
}

export interface TraceSettings {
  /** Part of the new traces that are sampled, 0 to 1. */
  ratio: number;
}

/** Increase of a counter since the last report. */
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
  /** The control thread's clock when the worker starts. */
  monotonic_ms: number;
  /** The certificate for names without one. */
  fallback: Certificate;
  /** Shared, so that TLS sessions can be resumed in another worker. */
  ticket_keys: Uint8Array;
  region: string;
  host_id: string;
  /** The S3 server of apps' buckets. */
  buckets: BucketsSetting | undefined;
  /** Undefined when requests are not traced. */
  traces: TraceSettings | undefined;
}
