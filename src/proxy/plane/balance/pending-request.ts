import type { Socket } from "node:net";
import type { UpstreamConnection } from "../http1/upstream.ts";
import type { TargetState } from "./target.ts";

/** Why a request was not proxied, for the client. */
export interface Refusal {
  status: number;
  /** A short code, in `svc-reason` and in the body. */
  reason: string;
  text: string;
}

/** Restricts which machine is chosen. */
export interface TargetConstraint {
  machine_id?: string;
  region?: string;
  /** Excludes this machine. */
  not?: string;
  /** Prefers this machine if it has capacity. */
  prefer?: string;
}

/** A request or raw connection that needs a machine. */
export interface PendingRequest {
  kind: "exchange" | "socket" | "seat";
  /** Requires a new connection. */
  fresh: boolean;
  /** The connection may be upgraded; it then belongs to the requester. */
  upgrade?: boolean;
  preface: Buffer | undefined;
  /** Time it was queued; set by the route. */
  since: number;
  /** Set by the route when no machine took it at once. */
  queued?: boolean;
  /** Time of the first refused connection. */
  refused_at: number | undefined;
  aborted: boolean;
  constraint?: TargetConstraint | undefined;
  /** Called without a target when a static file responds. */
  got(target: TargetState | undefined, connection: UpstreamConnection | Socket | undefined): void;
  refused(refusal: Refusal): void;
}
