/** A finished span, as workers report it. Times are in milliseconds since 1970, with fractions. */
export interface Span {
  trace_id: string;
  span_id: string;
  /** Undefined for the first span of a trace. */
  parent_id: string | undefined;
  state: string;
  name: string;
  kind: "internal" | "server" | "client";
  start_ms: number;
  end_ms: number;
  attributes: SpanAttributes;
  /** Why it failed, if so. */
  error: string | undefined;
}

export type SpanAttributes = Record<string, string | number | boolean | undefined>;

/** Methods that HTTP's semantic conventions know; others are `_OTHER`, so that clients cannot invent span names. */
const METHODS = new Set("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split(" "));

export function methodAttributes(method: string): { name: string; attributes: SpanAttributes } {
  return METHODS.has(method)
    ? { name: method, attributes: { "http.request.method": method } }
    : { name: "HTTP", attributes: { "http.request.method": "_OTHER", "http.request.method_original": method } };
}
