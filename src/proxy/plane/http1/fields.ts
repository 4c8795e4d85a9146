/** Names of header fields that the proxy reads, removes or writes itself. */

/** What a field is to us; all others are passed on as they are. */
export type Role =
  /** Framing and routing: read, then written anew. */
  | "host"
  | "length"
  | "encoding"
  | "connection"
  | "upgrade"
  | "te"
  /** Belongs to one connection only: not passed on. */
  | "hop"
  /** Says who asks, and only we know that: what a client writes there is not passed on. */
  | "ours"
  /** Passed on, but not when it comes as a trailer. */
  | "expect";

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
]);

/** The same of a field of an answer. */
export type ResponseRole = "length" | "encoding" | "connection" | "upgrade" | "kept" | "hop";

const ANSWER_ROLES = new Map<string, ResponseRole>([
  ["content-length", "length"],
  ["transfer-encoding", "encoding"],
  ["connection", "connection"],
  ["upgrade", "upgrade"],
  ["keep-alive", "kept"],
  ["proxy-connection", "hop"],
]);

const OURS = /^(?:x-forwarded|svc|fly)-/;

/**
 * The role of a field of a request, by its lower-case name. A name with underscores is judged as if they were
 * dashes: many programs behind a proxy make one of the two, so `x_forwarded_for` must not get through.
 */
export function roleOf(name: string): Role | undefined {
  const role = ROLES.get(name) ?? (OURS.test(name) ? "ours" : undefined);
  if (role !== undefined || !name.includes("_")) return role;
  const dashed = name.replaceAll("_", "-");
  return ROLES.has(dashed) || OURS.test(dashed) ? "ours" : undefined;
}

/** A name and all that is to be known of it. */
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

/** Fields that a trailer may not bring: they would change how the message is read, or who sent it. */
export const forbiddenInTrailers = (name: string): boolean =>
  roleOf(name) !== undefined || /^(?:content-|set-cookie$|authorization$|cookie$|trailer$)/.test(name);
