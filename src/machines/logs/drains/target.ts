/** Checks where a drain sends to. */
import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf } from "#core/assert.ts";
import { fail, type Problem } from "#core/errors.ts";
import type { DrainKind, DrainTarget } from "./types.ts";

export interface DrainInput {
  kind: DrainKind;
  url: string;
  headers?: Record<string, string>;
  ca?: string;
  cert?: string;
  key?: string;
}

/** Headers that say what is sent, which is not the caller's to say. */
const OWN_HEADERS = new Set(["content-type", "content-encoding", "content-length", "host", "connection"]);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;

/** The address without what may be secret. */
export const addressOf = (url: string): string => {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
};

export function checkTarget(input: DrainInput): DrainTarget {
  const { kind, url, headers = {} } = input;
  const problems = [urlProblem(kind, url), ...headerProblems(kind, headers), ...certificateProblems(input)];
  const [first, ...more] = problems.filter((problem) => problem !== undefined);
  if (first) fail("invalid_request", `${first.path} ${first.problem}: ${first.allowed}`, { details: [first, ...more] });
  const given = (["ca", "cert", "key"] as const).flatMap((name) => (input[name] ? [[name, input[name]]] : []));
  return {
    url: new URL(url).href,
    headers,
    ...(Object.fromEntries(given) as Pick<DrainTarget, "ca" | "cert" | "key">),
  };
}

function urlProblem(kind: DrainKind, text: string): Problem | undefined {
  const allowed = kind === "syslog" ? "syslog+tls://host:6514" : "https://host/path";
  const schemes = kind === "syslog" ? /^syslog\+tls:$/ : /^https?:$/;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const path = "body.url";
  if (!url || !schemes.test(url.protocol) || url.hostname === "")
    return { path, problem: `is not an address for ${kind}`, allowed };
  if (url.username !== "" || url.password !== "")
    return { path, problem: "has a password in it", allowed: "a password in a header, such as Authorization" };
  return undefined;
}

function headerProblems(kind: DrainKind, headers: Record<string, string>): Problem[] {
  return Object.entries(headers).flatMap(([name, value]): Problem[] => {
    const path = `body.headers.${name}`;
    if (kind === "syslog") return [{ path, problem: "is of HTTP, and syslog has no headers", allowed: "no headers" }];
    if (!HEADER_NAME.test(name)) return [{ path, problem: "is not a header's name", allowed: "X-Scope-OrgID" }];
    if (OWN_HEADERS.has(name.toLowerCase()))
      return [{ path, problem: "is set by the platform", allowed: "other headers" }];
    return /^[\t\x20-\x7e]*$/.test(value)
      ? []
      : [{ path, problem: "has other characters", allowed: "printable ASCII" }];
  });
}

function certificateProblems({ kind, ca, cert, key }: DrainInput): (Problem | undefined)[] {
  if (ca === undefined && cert === undefined && key === undefined) return [];
  const path = "body.ca";
  if (kind !== "syslog") return [{ path, problem: "is for syslog", allowed: "HTTPS with the system's authorities" }];
  if ((cert === undefined) !== (key === undefined))
    return [{ path: "body.cert", problem: "and `key` belong together", allowed: "both, or neither" }];
  try {
    // TLS takes an authority that is none, and trusts nobody then.
    if (ca) new X509Certificate(ca);
    createSecureContext({ ...(ca ? { ca } : {}), ...(cert ? { cert, key } : {}) });
    return [];
  } catch (thrown) {
    return [{ path, problem: `cannot be used (${messageOf(thrown)})`, allowed: "certificates and a key in PEM" }];
  }
}
