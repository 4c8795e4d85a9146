import { PROXY_LIMITS } from "../limits.ts";
import type { RecentRequest } from "../table.ts";
import type { Route } from "./balance/route.ts";
import type { TargetState } from "./balance/target.ts";
import type { Peer } from "./header-rewrite.ts";
import type { RequestHead } from "./http1/head.ts";
import { pathOf } from "./path-routes.ts";
import { readContext } from "./trace/context.ts";
import { RequestTrace } from "./trace/request-trace.ts";
import type { PlaneServices } from "./types.ts";

interface Begun {
  route: Route;
  head: RequestHead;
  request_id: string;
  started: number;
}

interface Parts {
  plane: PlaneServices;
  peer: Peer;
  /** HTTP's version between client and proxy. */
  protocol: "1.1" | "2";
}

/** Follows a request to its end: counts it, reports it when it failed or was slow, and records its trace. */
export class RequestLog {
  readonly #parts: Parts;
  #begun: Begun | undefined;
  #trace: RequestTrace | undefined;
  #machine_id: string | undefined;
  /** Time of the response head. */
  #answered_at: number | undefined;
  #status = 0;
  /** Why it failed. */
  #reason: string | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  begin(begun: Begun): void {
    const { tracer } = this.#parts.plane;
    this.#begun = begun;
    this.#trace = tracer && new RequestTrace(tracer, begun.head.trace_lines);
    this.#machine_id = undefined;
    this.#answered_at = undefined;
    this.#status = 0;
    this.#reason = undefined;
  }

  /** The request is queued for a machine of this route. */
  waits({ targets }: Route): void {
    this.#trace?.waits(this.#parts.plane.now(), targets.length === 0);
  }

  /** A connection for it was found: to this machine, or to a static file. `queued`: not at once. */
  attempts(target: TargetState | undefined, queued: boolean): void {
    this.#machine_id = target?.table.machine_id;
    if (this.#begun) this.#trace?.attempts(this.#parts.plane.now(), this.#begun.head, target, queued);
  }

  /** The header lines that continue the client's trace at the machine. */
  get traceLines(): string {
    return this.#trace?.lines ?? this.#begun?.head.trace_lines ?? "";
  }

  answered(status: number, replay: boolean): void {
    const now = this.#parts.plane.now();
    this.#trace?.answered(status, replay, now);
    if (replay) return;
    this.#status = status;
    this.#answered_at = now;
  }

  /** The attempt failed; it may be retried. */
  failed(problem: Error): void {
    this.#reason = "broken_off";
    this.#trace?.failed(problem.message, this.#parts.plane.now());
  }

  /** The proxy responds itself. */
  refused(reason: string): void {
    this.#reason = reason;
  }

  /** The response is sent: counted for the route, also when the proxy refused it before it was routed. */
  ended(route: Route | undefined, status: number, started: number): void {
    const now = this.#parts.plane.now();
    const seconds = (now - started) / 1000;
    route?.counters.responded(status, seconds);
    const begun = this.#begun;
    if (!begun) return;
    const path_route = begun.route.paths?.find(begun.head.target);
    if (path_route !== undefined) begun.route.counters.routed(path_route, status, seconds);
    if (status < 400) this.#reason = undefined;
    this.#finish(begun, status, now, path_route);
  }

  /** The client disconnected, or the response broke off; nothing happens when the request has ended. */
  aborted(): void {
    const begun = this.#begun;
    if (!begun) return;
    const now = this.#parts.plane.now();
    this.#reason ??= "client_disconnected";
    this.#finish(begun, this.#status, now, begun.route.paths?.find(begun.head.target));
  }

  #finish(begun: Begun, status: number, now: number, path_route: string | undefined): void {
    this.#begun = undefined;
    const { plane, peer, protocol } = this.#parts;
    const { head, route, request_id, started } = begun;
    const failed = status >= 500 || this.#reason === "broken_off";
    // A stream that lasts is not slow once it has begun.
    const always = failed || (this.#answered_at ?? now) - started >= PROXY_LIMITS.slow_request_ms;
    if (always) plane.report(route.app.app_id, this.#recent(begun, status, now));
    if (!this.#trace) return;
    const error = this.#reason ?? (status >= 500 ? String(status) : undefined);
    const version = head.minor === 0 ? "1.0" : protocol;
    const request = { head, peer, app: route.app, request_id, started, status, error, path_route, protocol: version };
    this.#trace.finish(now, request, always);
  }

  #recent({ head, request_id, started }: Begun, status: number, now: number): RecentRequest {
    const { plane } = this.#parts;
    return {
      at_ms: plane.now_us() / 1000 - (now - started),
      method: head.method,
      path: pathOf(head.target).slice(0, PROXY_LIMITS.request_path_chars),
      status,
      duration_ms: now - started,
      machine_id: this.#machine_id ?? null,
      request_id,
      trace_id: (this.#trace?.id ?? readContext(head.trace_lines))?.trace_id ?? null,
      reason: this.#reason ?? null,
    };
  }
}
