import type { Socket } from "node:net";
import type { UpstreamConnection } from "../http1/upstream.ts";
import type { TargetState } from "./target.ts";

/** Why a request was not passed on, for its sender. */
export interface Refusal {
  status: number;
  /** One word, in `svc-reason` and in the body. */
  reason: string;
  text: string;
}

/** Which machine somebody wants, when not any. */
export interface TargetConstraint {
  machine_id?: string;
  region?: string;
  /** Any but this one. */
  not?: string;
  /** This one if it has room. */
  prefer?: string;
}

/** Somebody who wants a machine: an exchange, or a raw connection. */
export interface PendingRequest {
  kind: "exchange" | "socket" | "seat";
  /** Not a connection that was used before. */
  fresh: boolean;
  /** The connection may change its protocol, and belongs to whoever asked then. */
  upgrade?: boolean;
  preface: Buffer | undefined;
  /** Since when it waits; set by the route. */
  since: number;
  /** When the first machine refused it. */
  refused_at: number | undefined;
  gone: boolean;
  constraint?: TargetConstraint | undefined;
  /** Without a target when no machine answers. */
  got(target: TargetState | undefined, connection: UpstreamConnection | Socket | undefined): void;
  refused(refusal: Refusal): void;
}
