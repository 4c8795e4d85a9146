/**
 * Parses a PostgreSQL URL like libpq: several hosts separated by commas, tried in order, and `target_session_attrs`
 * to choose among them.
 */

/** Acceptable servers: any, or one that accepts writes. */
export type SessionTarget = "any" | "read-write";

export interface PostgresAddress {
  /** One URL per host, in the order to try them. */
  urls: readonly string[];
  target: SessionTarget;
}

const TARGETS: Readonly<Record<string, SessionTarget>> = {
  any: "any",
  "read-write": "read-write",
  primary: "read-write",
};
const URL_PARTS = /^(postgres(?:ql)?:\/\/)((?:[^/?@]*@)?)([^/?]*)([^?]*)\??(.*)$/;

/** Throws an Error that says what is wrong, without the password. */
export function parsePostgresUrl(url: string): PostgresAddress {
  const [, scheme, user = "", authority = "", path = "", search = ""] = URL_PARTS.exec(url) ?? [];
  if (scheme === undefined) throw new Error("only postgres://… is a database address");
  const query = new URLSearchParams(search);
  const wanted = query.get("target_session_attrs");
  query.delete("target_session_attrs");
  const urls = query.has("host") ? fromQuery(query) : fromAuthority(authority);
  const target = wanted === null ? (urls.length > 1 ? "read-write" : "any") : TARGETS[wanted];
  if (target === undefined)
    throw new Error(`target_session_attrs is one of ${Object.keys(TARGETS).join(", ")}, since the platform writes`);
  return {
    urls: urls.map(({ host, extra }) => {
      const parameters = new URLSearchParams(query);
      for (const [name, value] of Object.entries(extra)) parameters.set(name, value);
      const text = parameters.toString();
      return `${scheme}${user}${host}${path}${text === "" ? "" : `?${text}`}`;
    }),
    target,
  };
}

interface HostPart {
  host: string;
  extra: Record<string, string>;
}

/** `host1:5432,host2:5433` between the user and the name of the database. */
function fromAuthority(authority: string): HostPart[] {
  const hosts = authority.split(",");
  if (hosts.length > 1 && hosts.includes("")) throw new Error("one of the hosts in the database address is empty");
  return hosts.map((host) => ({ host, extra: {} }));
}

/** `?host=/run/a,/run/b&port=5432,5433`; a single or missing port applies to all hosts. */
function fromQuery(query: URLSearchParams): HostPart[] {
  const hosts = (query.get("host") ?? "").split(",");
  const ports = query.get("port")?.split(",") ?? [];
  if (ports.length > 1 && ports.length !== hosts.length)
    throw new Error(`the database address has ${hosts.length} hosts and ${ports.length} ports`);
  return hosts.map((host, index) => {
    const port = ports[index] ?? ports[0];
    return { host: "", extra: { host, ...(port === undefined ? {} : { port }) } };
  });
}
