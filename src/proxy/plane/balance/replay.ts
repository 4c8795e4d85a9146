/**
 * A response with the header `svc-replay` (or `fly-replay`) is not for the client: it requests that the same request be
 * sent to another machine. `instance=148e…`, `region=fra`, `app=other`, `elsewhere=true`, `prefer_instance=148e…`,
 * `state=text for that machine`, several with semicolons.
 */
import { PROXY_LIMITS } from "../../limits.ts";
import type { RequestHead, ResponseHead } from "../http1/head.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import type { Refusal, TargetConstraint } from "./pending-request.ts";
import type { Route } from "./route.ts";
import type { TargetState } from "./target.ts";

/** Buffered bytes of all requests of a worker. */
export interface ReplayBudget {
  bytes: number;
}

/** Looks up routes of a worker. */
export interface Routes {
  readonly replayBudget: ReplayBudget;
  now_us(): number;
  /**
   * The current route for the same traffic as `like`, of another app of the same organization or of the same app.
   * Undefined when the app has no open port.
   */
  sibling(app_name: string, like: Route): Route | undefined;
}

/** Where a request is replayed to. */
interface ReplayTarget {
  route: Route;
  constraint: TargetConstraint;
  /** A header for the machine that receives the replay. */
  source: string;
}

/** Buffers one request's body, up to a limit, until it is answered, because the response may request a replay. */
class SentBody {
  readonly #budget: ReplayBudget;
  #chunks: Buffer[] | undefined = [];
  #bytes = 0;
  #trailers: string | undefined;

  constructor(budget: ReplayBudget) {
    this.#budget = budget;
  }

  write(upstream: UpstreamConnection, chunk: Buffer): boolean {
    this.#keep(chunk);
    return upstream.write(chunk);
  }

  end(upstream: UpstreamConnection | undefined, trailers: string): void {
    this.#trailers = trailers;
    upstream?.end(trailers);
  }

  /** Whether everything sent so far is still buffered. */
  get whole(): boolean {
    return this.#chunks !== undefined;
  }

  /** Sends the buffered body again. */
  again(upstream: UpstreamConnection): void {
    for (const chunk of this.#chunks ?? []) upstream.write(chunk);
    if (this.#trailers !== undefined) upstream.end(this.#trailers);
  }

  /** Frees the buffer. */
  forget(): void {
    this.#budget.bytes -= this.#bytes;
    this.#bytes = 0;
    this.#chunks = undefined;
  }

  #keep(chunk: Buffer): void {
    if (!this.#chunks) return;
    const { replay_bytes, replay_all_bytes } = PROXY_LIMITS;
    if (this.#bytes + chunk.length > replay_bytes || this.#budget.bytes + chunk.length > replay_all_bytes) {
      this.forget();
      return;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#budget.bytes += chunk.length;
  }
}

const NAMES: ReadonlySet<string> = new Set(["svc-replay", "fly-replay"]);

/** The replay that a response requests, if any. */
function replayRequested({ fields }: ResponseHead): string | undefined {
  for (let i = 0; i < fields.length; i += 2) if (NAMES.has(fields[i] as string)) return fields[i + 1];
  return undefined;
}

/** Tracks one request's attempts: the first machine, and a second one after a replay. */
export class Attempts {
  /** The buffered body; undefined when there is none. */
  readonly body: SentBody | undefined;
  /** Header for the second machine; empty for the first. */
  source = "";
  readonly #routes: Routes;

  constructor(head: RequestHead, routes: Routes) {
    this.body = head.length === 0 ? undefined : new SentBody(routes.replayBudget);
    this.#routes = routes;
  }

  /** Where the request goes next, or why it is refused; undefined when the response is for the client. */
  next(answer: ResponseHead, route: Route, target: TargetState | undefined): ReplayTarget | Refusal | undefined {
    const requested = replayRequested(answer);
    const next = requested === undefined ? undefined : this.#judge(requested, route, target);
    if (!next || "status" in next) this.body?.forget();
    else this.source = next.source;
    return next;
  }

  #judge(requested: string, route: Route, target: TargetState | undefined): ReplayTarget | Refusal {
    const { app } = route;
    const { machine_id = "", region = "" } = target?.table ?? {};
    const refuse = (reason: string, why: string): Refusal => {
      const who = `machine ${machine_id} of ${app.app_name}`;
      return { status: 502, reason, text: `${who} requested a replay (${requested.slice(0, 200)}), but ${why}` };
    };
    // Only one replay: a second machine that replays again is a loop, or leads to one.
    if (this.source !== "") return refuse("replay_loop", "the request had been replayed already");
    if (this.body && !this.body.whole) {
      const { replay_bytes } = PROXY_LIMITS;
      return refuse("replay_body", `the request's body was too large to buffer (limit replay_bytes ${replay_bytes})`);
    }
    const wants = new Map(requested.split(";").map(pairOf));
    const name = wants.get("app") ?? app.app_name;
    const to = this.#routes.sibling(name, route);
    if (!to) return refuse("replay_refused", `no app ${name} of its organization is open for such requests`);
    const constraint = constraintOf(wants, machine_id);
    if (!constraint) return refuse("replay_refused", "it names no instance, prefer_instance, region, app or elsewhere");
    const state = wants.has("state") ? `;state=${wants.get("state")}` : "";
    const source = `svc-replay-src: instance=${machine_id};region=${region};t=${this.#routes.now_us()}${state}\r\n`;
    return { route: to, constraint, source };
  }
}

function pairOf(part: string): [string, string] {
  const equals = part.indexOf("=");
  return equals < 0 ? [part.trim(), ""] : [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
}

function constraintOf(wants: ReadonlyMap<string, string>, machine: string): TargetConstraint | undefined {
  const instance = wants.get("instance");
  const prefer = wants.get("prefer_instance");
  const region = wants.get("region");
  const elsewhere = wants.get("elsewhere") === "true";
  if (instance === undefined && prefer === undefined && region === undefined && !elsewhere && !wants.has("app")) {
    return undefined;
  }
  return {
    ...(instance === undefined ? {} : { machine_id: instance }),
    ...(prefer === undefined ? {} : { prefer }),
    ...(region === undefined ? {} : { region }),
    ...(elsewhere ? { not: machine } : {}),
  };
}
