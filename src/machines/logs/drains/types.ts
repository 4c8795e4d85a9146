/** Log drains: where an organization's log lines are sent. */
import type { QueuedLine } from "../queue.ts";

export const DRAIN_KINDS = ["loki", "victorialogs", "otlp", "syslog"] as const;
export type DrainKind = (typeof DRAIN_KINDS)[number];

/** What may be secret, stored encrypted. */
export interface DrainTarget {
  url: string;
  /** Of HTTP requests. */
  headers: Record<string, string>;
  /** Of syslog, PEM: the authority of the server's certificate instead of the system's, and our own certificate. */
  ca?: string;
  cert?: string;
  key?: string;
}

export interface Drain {
  id: string;
  org_id: string;
  /** Restricts the drain to one app; null means all apps of the organization. */
  app_id: string | null;
  kind: DrainKind;
  /** A `DrainTarget`, sealed. */
  target: Uint8Array;
  /** Scheme and host, for people. */
  address: string;
  /** Lines from this time on are sent. */
  since: number;
  created_at: number;
  /** The token that created it; the drain stops when that is revoked. */
  token_id: string;
}

/** How far a host has got with a drain. */
export interface DrainState {
  drain_id: string;
  host_id: string;
  /** Lines that the receiver took. */
  sent: number;
  /** Lines that it refused for good. */
  refused: number;
  /** What was deleted before it could be sent, or written faster than it could be kept. */
  lost_gaps: number;
  lost_bytes: number;
  /** When the oldest line was written that is still to be sent; null when there is none. */
  oldest_at: number | null;
  last_success_at: number | null;
  last_error: string | null;
  /** Consecutive failed requests. */
  failures: number;
  updated_at: number;
}

export interface DrainMachine {
  id: string;
  name: string;
  app_name: string;
  region: string;
}

/** A line on its way to a receiver. */
export interface DrainLine extends QueuedLine {
  machine: DrainMachine;
}

/** What a receiver said to a batch. */
export type Outcome =
  /** It has the lines, except for some that it refused. */
  | { taken: true; refused: number; reason?: string }
  /** Later it may take them. */
  | { taken: false; reason: string; retry_after_ms?: number }
  /** It will never take this batch; smaller ones or some of its lines perhaps. */
  | { taken: false; reason: string; refuses: true };
