/** Names of header fields that the proxy reads, removes or writes itself. */

/** How the proxy treats a header; all others are passed on unchanged. */
export type Role =
  /** Framing and routing: parsed, then written again. */
  | "host"
  | "length"
  | "encoding"
  | "connection"
  | "upgrade"
  | "te"
  /** Hop-by-hop: not passed on. */
  | "hop"
  /** Forwarding headers that the proxy sets; what a client sends there is dropped. */
  | "ours"
  /** Passed on, but not as a trailer. */
  | "expect"
  /** Continues a trace: passed on as they are, or rewritten when requests are traced. */
  | "trace";

const ROLES = new Map<string, Role>([
  ["host", "host"],
  ["content-length", "length"],
  ["transfer-encoding", "encoding"],
  ["connection", "connection"],
  ["upgrade", "upgrade"],
  ["te", "te"],
  ["keep-alive", "hop"],
  ["proxy-connection", "hop"],
  ["proxy-authenticate", "hop"],
  ["proxy-authorization", "hop"],
  ["http2-settings", "hop"],
  ["forwarded", "ours"],
  ["via", "ours"],
  ["x-real-ip", "ours"],
  ["x-request-start", "ours"],
  ["expect", "expect"],
  ["traceparent", "trace"],
  ["tracestate", "trace"],
]);

/** How the proxy treats a response header. */
export type ResponseRole = "length" | "encoding" | "connection" | "upgrade" | "keep-alive" | "hop";

const ANSWER_ROLES = new Map<string, ResponseRole>([
  ["content-length", "length"],
  ["transfer-encoding", "encoding"],
  ["connection", "connection"],
  ["upgrade", "upgrade"],
  ["keep-alive", "keep-alive"],
  ["proxy-connection", "hop"],
]);

const OURS = /^(?:x-forwarded|svc|fly)-/;

/**
 * The role of a request header, by its lower-case name. Underscores count as dashes, because many programs treat them
 * alike: `x_forwarded_for` must not get through.
 */
export function roleOf(name: string): Role | undefined {
  const role = ROLES.get(name) ?? (OURS.test(name) ? "ours" : undefined);
  if (role !== undefined || !name.includes("_")) return role;
  const dashed = name.replaceAll("_", "-");
  return ROLES.has(dashed) || OURS.test(dashed) ? "ours" : undefined;
}

/** A parsed header name. */
export interface FieldName {
  /** In lower case. */
  readonly text: string;
  readonly role: Role | undefined;
  readonly answer_role: ResponseRole | undefined;
}

export function fieldName(written: string): FieldName {
  const text = written.toLowerCase();
  return { text, role: roleOf(text), answer_role: ANSWER_ROLES.get(text) };
}

/** Headers that are not allowed as trailers, because they change framing or identity. */
export const forbiddenInTrailers = (name: string): boolean =>
  roleOf(name) !== undefined || /^(?:content-|set-cookie$|authorization$|cookie$|trailer$)/.test(name);
