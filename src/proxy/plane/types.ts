import type { RecentRequest } from "../table.ts";
import type { ReplayBudget, Routes } from "./balance/replay.ts";
import type { Route } from "./balance/route.ts";
import type { Peer } from "./header-rewrite.ts";
import type { Keyring } from "./listen/tls.ts";
import type { Tracer } from "./trace/tracer.ts";

/** A connection or listener with deadlines, which the worker checks at intervals. */
export interface Watched {
  sweep(now: number): void;
  /** Finishes requests in progress and accepts no more; an idle connection closes at once, or later when `patient`. */
  drain(patient: boolean): void;
  /** The listener that accepted it. */
  readonly listener?: object;
  /** Closes at once, because the worker ends. */
  cut(): void;
}

/** What connections and listeners use of the worker that they belong to. */
export interface PlaneServices extends Routes {
  readonly region: string;
  readonly keys: Keyring;
  /** Responses to ACME http-01 challenges, by token. */
  readonly challenges: Readonly<Record<string, string>>;
  /** The bodies of all requests that may have to be replayed. */
  readonly replayBudget: ReplayBudget;
  /** Whether the worker has as many connections as it may have. */
  readonly crowded: boolean;
  /** Undefined when requests are not traced. */
  readonly tracer: Tracer | undefined;
  now(): number;
  /** Reports a failed or slow request of an app. */
  report(app_id: string, request: RecentRequest): void;
  requestId(): string;
  watch(watched: Watched): void;
  unwatch(watched: Watched): void;
  /** The PROXY protocol header for a machine that wants one. */
  preface(route: Route, peer: Peer): Buffer | undefined;
}
