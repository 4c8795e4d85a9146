import { PROXY_LIMITS } from "../../limits.ts";
import { BodyPace } from "../body-pace.ts";
import { endsConnection, type Peer, repeatable } from "../header-rewrite.ts";
import type { RequestHead, ResponseHead } from "../http1/head.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import { RequestLog } from "../request-log.ts";
import { tryFiles } from "../static/statics.ts";
import type { PlaneServices } from "../types.ts";
import type { PendingRequest, Refusal, TargetConstraint } from "./pending-request.ts";
import { Attempts } from "./replay.ts";
import type { Route } from "./route.ts";
import type { TargetState } from "./target.ts";

/** The HTTP/1 client or HTTP/2 stream whose request is proxied. */
interface RequestOwner {
  /** Sends the request to the target, or to a file when there is no target. */
  got(target: TargetState | undefined, connection: UpstreamConnection): void;
  refused(refusal: Refusal): void;
  /** Releases the target and its connection: the response that has begun is not sent to the client. */
  releaseTarget(): void;
  /** The request is queued for a target. */
  waits(): void;
}

/**
 * Finds what responds to a request: a static file, else a machine, and after a replay the machine that the first one
 * names. HTTP/1 and HTTP/2 share it.
 */
export class ProxyExchange implements PendingRequest {
  readonly kind = "exchange";
  fresh = false;
  upgrade = false;
  queued = false;
  preface: Buffer | undefined;
  since = 0;
  refused_at: number | undefined;
  aborted = false;
  constraint: TargetConstraint | undefined;
  attempts: Attempts | undefined;
  readonly pace = new BodyPace();
  readonly log: RequestLog;
  readonly #plane: PlaneServices;
  readonly #peer: Peer;
  readonly #owner: RequestOwner;
  /** The route whose targets are tried. */
  #route: Route | undefined;
  #retried = false;

  constructor({ plane, peer }: { plane: PlaneServices; peer: Peer }, owner: RequestOwner, protocol: "1.1" | "2") {
    this.#plane = plane;
    this.#peer = peer;
    this.log = new RequestLog({ plane, peer, protocol });
    this.#owner = owner;
  }

  got(target: TargetState | undefined, connection: unknown): void {
    this.log.attempts(target, this.queued);
    this.#owner.got(target, connection as UpstreamConnection);
  }

  refused(refusal: Refusal): void {
    this.#owner.refused(refusal);
  }

  findTarget(route: Route, head: RequestHead, request_id: string, started: number): void {
    this.log.begin({ route, head, request_id, started });
    this.attempts = new Attempts(head, this.#plane);
    this.constraint = undefined;
    this.#retried = false;
    this.upgrade = head.upgrade !== undefined;
    this.fresh = endsConnection(head) || this.upgrade;
    this.#route = route;
    if (!tryFiles(route.statics, head, this)) this.#obtain();
  }

  noFile(): void {
    this.#obtain();
  }

  /**
   * True when the request is retried on a new connection, to the same machine or another one: the machine closed an
   * idle connection just when it was reused. Once, and only repeatable requests.
   */
  retries(head: RequestHead, connection: UpstreamConnection | undefined, untouched: boolean): boolean {
    if (this.#retried || this.aborted || !untouched || !connection?.reused || !repeatable(head)) return false;
    this.#retried = true;
    this.fresh = true;
    this.#obtain();
    return true;
  }

  /** True when the response requests a replay: the request goes to another machine, or is refused. */
  replays(head: ResponseHead, route: Route, target: TargetState | undefined): boolean {
    const next = this.attempts?.next(head, route, target);
    this.log.answered(head.status, next !== undefined);
    if (!next) return false;
    this.#owner.releaseTarget();
    if ("status" in next) {
      this.#owner.refused(next);
      return true;
    }
    this.constraint = next.constraint;
    this.#route = next.route;
    this.#obtain();
    return true;
  }

  /** Refuses the request because the machine has sent nothing for too long. */
  timeOut(): void {
    this.#owner.releaseTarget();
    this.#owner.refused({ status: 504, reason: "answer_timeout", text: "the machine did not answer in time" });
  }

  /** Refuses the request because its body comes too slowly. */
  refuseSlow(): void {
    const { slow_body_bytes, slow_body_ms } = PROXY_LIMITS;
    const text = `less than ${slow_body_bytes} bytes of the request's body came in ${slow_body_ms / 1000} s (limit slow_body_bytes)`;
    this.#owner.releaseTarget();
    this.#owner.refused({ status: 408, reason: "slow_body", text });
  }

  /** Header lines for the machine beside the client's own: of a replay, and of the trace. */
  get moreLines(): string {
    return (this.attempts?.source ?? "") + this.log.traceLines;
  }

  /** The request is over: its body is freed, because it is not replayed. */
  over(): void {
    this.attempts?.body?.forget();
    this.log.aborted();
  }

  #obtain(): void {
    const before = this.#route as Route;
    // Tables may have changed since the route was found.
    const route = this.#plane.sibling(before.app.app_name, before) ?? before;
    this.#route = route;
    this.refused_at = undefined;
    this.preface = this.#plane.preface(route, this.#peer);
    this.#owner.waits();
    this.queued = false;
    this.log.waits(route);
    route.obtain(this);
  }
}
