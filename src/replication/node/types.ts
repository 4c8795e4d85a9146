/** Options of a node, and what it reports about itself. */
import type { Clock } from "#core/clock.ts";
import type { Credentials } from "../credentials/credentials.ts";
import type { Sizes } from "../limits.ts";
import type { Step } from "../wal/wal-writer.ts";
import type { AckMode } from "./in-sync-replicas.ts";

export interface NodeOptions {
  dir: string;
  /** host:port of this node, as others reach it. */
  hostname: string;
  clock: Clock;
  credentials?: Credentials;
  sizes?: Sizes;
  /** How far replicas may be behind before writers wait. */
  max_lag_ms?: number;
  /** How many replicas must have a transaction before it is acknowledged. */
  ack?: AckMode;
  /** Transactions that may wait to be acknowledged before writers wait. */
  max_unacked?: number;
  /** False for a node that is never primary. */
  candidate?: boolean;
  step?: (step: Step) => void;
  log(message: string): void;
  /** The disk failed: the process should end, and start again from what is on it. */
  onFailure(error: unknown): void;
}

/** The HTTP proxy of a node, as reported to others. */
export interface ProxyStatus {
  /** Where other nodes reach it. */
  url: string;
  readonly waiting: number;
  /** Writes that the application beside this node is working on. */
  readonly writing: number;
  /** While true, further writes wait for the next primary. */
  draining: boolean;
  readonly counts: Readonly<
    Record<"local" | "forwarded" | "queued" | "repeated" | "failed" | "longest_wait_ms", number>
  >;
}

export type Role = { kind: "primary"; term: number } | { kind: "replica"; primary: string } | { kind: "none" };
