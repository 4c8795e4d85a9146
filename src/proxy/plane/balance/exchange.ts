import { endsConnection, type Peer } from "../header-rewrite.ts";
import type { RequestHead, ResponseHead } from "../http1/head.ts";
import type { Plane } from "../plane.ts";
import { tryFiles } from "../static/statics.ts";
import { Attempts } from "./replay.ts";
import type { PendingRequest, Refusal, Route, TargetConstraint } from "./route.ts";
import type { TargetState } from "./target.ts";

/**
 * A request that looks for who answers it: a file, else a machine, and after that the machine which the first one
 * names. The same for every version of HTTP.
 */
export abstract class ProxyExchange implements PendingRequest {
  readonly kind = "exchange";
  fresh = false;
  upgrade = false;
  preface: Buffer | undefined;
  since = 0;
  refused_at: number | undefined;
  gone = false;
  constraint: TargetConstraint | undefined;
  protected readonly plane: Plane;
  protected readonly peer: Peer;
  protected attempts: Attempts | undefined;
  /** Where a machine is got from. */
  #from: Route | undefined;

  constructor({ plane, peer }: { plane: Plane; peer: Peer }) {
    this.plane = plane;
    this.peer = peer;
  }

  abstract got(target: TargetState | undefined, connection: unknown): void;
  abstract refused(refusal: Refusal): void;
  /** The answer that has begun is not wanted: the line and the seat are given back. */
  protected abstract letGo(): void;
  /** It waits for a machine from now on. */
  protected abstract waits(): void;

  protected findTarget(route: Route, head: RequestHead): void {
    this.attempts = new Attempts(head, this.plane);
    this.constraint = undefined;
    this.upgrade = head.upgrade !== undefined;
    this.fresh = endsConnection(head) || this.upgrade;
    this.#from = route;
    if (!tryFiles(route, head, this)) this.#obtain();
  }

  noFile(): void {
    this.#obtain();
  }

  /** On another connection, of the same machine or another one. */
  protected retry(): void {
    this.fresh = true;
    this.#obtain();
  }

  /** True when the answer is not for the client: the request goes on to another machine, or is refused. */
  protected goesOn(head: ResponseHead, route: Route, target: TargetState | undefined): boolean {
    const next = this.attempts?.next(head, route, target);
    if (!next) return false;
    this.letGo();
    if ("status" in next) {
      this.refused(next);
      return true;
    }
    this.constraint = next.constraint;
    this.#from = next.route;
    this.#obtain();
    return true;
  }

  /** The machine has said nothing for too long. */
  protected giveUp(): void {
    this.letGo();
    this.refused({ status: 504, reason: "answer_timeout", text: "the machine did not answer in time" });
  }

  /** The request is over: nothing of it is sent again. */
  protected forgetBody(): void {
    this.attempts?.body?.forget();
  }

  #obtain(): void {
    const before = this.#from as Route;
    // Tables may have changed since the route was found.
    const from = this.plane.sibling(before.app.app_name, before) ?? before;
    this.#from = from;
    this.refused_at = undefined;
    this.preface = this.plane.preface(from, this.peer);
    this.waits();
    from.obtain(this);
  }
}
