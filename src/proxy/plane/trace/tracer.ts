import { PROXY_LIMITS } from "../../limits.ts";
import type { TraceSettings } from "../../table.ts";
import { readContext, type TraceContext } from "./context.ts";
import type { Span } from "./span.ts";
import { newSpanId, newTraceId } from "./trace-ids.ts";

/** The identity of a request's trace in this proxy. */
export interface TraceIdentity {
  /** What the client sent, if it is valid. */
  readonly parent: TraceContext | undefined;
  readonly trace_id: string;
  readonly span_id: string;
  /** Whether the machine is told to record its part. */
  readonly sampled: boolean;
}

/**
 * One worker's traces: decides which are sampled, and buffers finished spans until they are reported. At most
 * `traces_per_second` are recorded, however many a client asks for; the others are counted as dropped.
 */
export class Tracer {
  readonly #ratio: number;
  readonly #now: () => number;
  readonly #wall_ms: () => number;
  #spans: Span[] = [];
  #dropped = 0;
  #second = 0;
  #recorded = 0;

  constructor({ ratio }: TraceSettings, clock: { monotonic(): number; now(): number }) {
    this.#ratio = ratio;
    this.#now = () => clock.monotonic();
    this.#wall_ms = () => clock.now();
  }

  /** Begins or continues a trace. The client's decision to sample is respected. */
  begin(trace_lines: string): TraceIdentity {
    const parent = trace_lines === "" ? undefined : readContext(trace_lines);
    return {
      parent,
      trace_id: parent?.trace_id ?? newTraceId(),
      span_id: newSpanId(),
      sampled: parent?.sampled ?? (this.#ratio > 0 && Math.random() < this.#ratio),
    };
  }

  /** Takes the spans of a finished request; their times are of the monotonic clock. */
  record(spans: () => Span[]): void {
    const now = this.#now();
    const second = Math.floor(now / 1000);
    if (second !== this.#second) this.#recorded = 0;
    this.#second = second;
    if (this.#recorded >= PROXY_LIMITS.traces_per_second) {
      this.#dropped++;
      return;
    }
    this.#recorded++;
    const ahead = this.#wall_ms() - now;
    for (const span of spans()) {
      span.start_ms += ahead;
      span.end_ms += ahead;
      this.#spans.push(span);
    }
  }

  /** Returns and resets what was recorded; undefined when there is nothing. */
  take(): { spans: Span[]; dropped: number } | undefined {
    if (this.#spans.length === 0 && this.#dropped === 0) return undefined;
    const taken = { spans: this.#spans, dropped: this.#dropped };
    this.#spans = [];
    this.#dropped = 0;
    return taken;
  }
}
