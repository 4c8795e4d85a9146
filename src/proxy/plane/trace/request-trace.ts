import type { TargetState } from "../balance/target.ts";
import type { Peer } from "../header-rewrite.ts";
import type { RequestHead } from "../http1/head.ts";
import { pathOf } from "../path-routes.ts";
import { contextLines } from "./context.ts";
import { methodAttributes, type Span, type SpanAttributes } from "./span.ts";
import { newSpanId } from "./trace-ids.ts";
import type { TraceIdentity, Tracer } from "./tracer.ts";

/** One connection to a machine for this request, or the wait for one. */
interface Step {
  kind: "client" | "internal";
  name: string;
  span_id: string;
  start: number;
  end: number | undefined;
  attributes: SpanAttributes;
  error: string | undefined;
}

/** What is known of a request when it ends. */
export interface TracedRequest {
  head: RequestHead;
  peer: Peer;
  protocol: string;
  app: { app_name: string; org_id: string };
  request_id: string;
  started: number;
  status: number;
  /** Why the request failed, if so. */
  error: string | undefined;
  /** The configured route that its path matches. */
  path_route: string | undefined;
}

/** The spans of one request: its own, one for each wait for a machine, and one for each attempt at one. */
export class RequestTrace {
  readonly id: TraceIdentity;
  readonly #tracer: Tracer;
  readonly #steps: Step[] = [];
  #attempts = 0;

  constructor(tracer: Tracer, trace_lines: string) {
    this.#tracer = tracer;
    this.id = tracer.begin(trace_lines);
  }

  /** The header lines for the machine of the last attempt: its span is the parent of what the machine records. */
  get lines(): string {
    const { trace_id, span_id, sampled, parent } = this.id;
    return contextLines({ trace_id, parent_id: this.#last?.span_id ?? span_id, sampled, state: parent?.state ?? "" });
  }

  /** The request begins to wait for a machine. `starts`: none is running, so one is started for it. */
  waits(now: number, starts: boolean): void {
    this.#begin("internal", starts ? "start machine" : "wait for machine", now, {});
  }

  /** It waits no longer. Without a queue the wait was for the connection only, and belongs to the attempt. */
  attempts(now: number, head: RequestHead, target: TargetState | undefined, queued: boolean): void {
    let start = now;
    if (queued) this.#end(now);
    else if (this.#last?.kind === "internal") start = this.#steps.pop()?.start ?? now;
    if (!target) return;
    const { name, attributes } = methodAttributes(head.method);
    const { machine_id, instance_id, region, host, port } = target.table;
    this.#attempts++;
    this.#begin("client", name, start, {
      ...attributes,
      "server.address": host,
      "server.port": port,
      "url.full": `http://${host.includes(":") ? `[${host}]` : host}:${port}${pathOf(head.target)}`,
      "http.request.resend_count": this.#attempts > 1 ? this.#attempts - 1 : undefined,
      "svc.machine_id": machine_id,
      "svc.machine_version": instance_id,
      "cloud.region": region,
    });
  }

  /** The machine responded; `replay`: its response sends the request to another machine. */
  answered(status: number, replay: boolean, now: number): void {
    const last = this.#last;
    if (last?.kind !== "client") return;
    last.attributes["http.response.status_code"] = status;
    if (status >= 400) last.error = String(status);
    if (!replay) return;
    last.attributes["svc.replay"] = true;
    this.#end(now);
  }

  failed(problem: string, now: number): void {
    const last = this.#last;
    if (last?.end !== undefined || !last) return;
    last.error = problem;
    this.#end(now);
  }

  /** The request is over. Sampled ones are recorded, and failed and slow ones always. */
  finish(now: number, request: TracedRequest, always: boolean): void {
    if (!this.id.sampled && !always) return;
    // What was still in progress failed with the request.
    const last = this.#last;
    if (last && last.end === undefined) last.error ??= request.error;
    this.#tracer.record(() => [this.#server(now, request), ...this.#steps.map((step) => this.#child(step, now))]);
  }

  get #last(): Step | undefined {
    return this.#steps.at(-1);
  }

  #begin(kind: Step["kind"], name: string, start: number, attributes: SpanAttributes): void {
    this.#steps.push({ kind, name, span_id: newSpanId(), start, end: undefined, attributes, error: undefined });
  }

  #end(now: number): void {
    const last = this.#last;
    if (last) last.end ??= now;
  }

  #server(now: number, { head, peer, protocol, app, status, error, ...request }: TracedRequest): Span {
    const { parent, trace_id, span_id } = this.id;
    const { name, attributes } = methodAttributes(head.method);
    return {
      trace_id,
      span_id,
      parent_id: parent?.parent_id,
      state: parent?.state ?? "",
      kind: "server",
      name: request.path_route === undefined ? name : `${name} ${request.path_route}`,
      start_ms: request.started,
      end_ms: now,
      error,
      attributes: {
        ...attributes,
        // The query is left out: it may hold secrets.
        "url.path": pathOf(head.target),
        "url.scheme": peer.secure ? "https" : "http",
        "http.route": request.path_route,
        "http.response.status_code": status === 0 ? undefined : status,
        "server.address": head.host,
        "server.port": peer.local_port,
        "client.address": peer.address,
        "network.peer.address": peer.address,
        "network.peer.port": peer.port,
        "network.protocol.version": protocol,
        "user_agent.original": /^user-agent: *([^\r]*)/im.exec(head.lines)?.[1],
        "error.type": error,
        "svc.app": app.app_name,
        "svc.org_id": app.org_id,
        "svc.request_id": request.request_id,
      },
    };
  }

  #child({ kind, name, span_id, start, end, attributes, error }: Step, now: number): Span {
    const { trace_id, span_id: parent_id, parent } = this.id;
    return {
      trace_id,
      span_id,
      parent_id,
      state: parent?.state ?? "",
      kind,
      name,
      start_ms: start,
      end_ms: end ?? now,
      attributes: { ...attributes, "error.type": error },
      error,
    };
  }
}
