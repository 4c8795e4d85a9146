/** Where a request goes: decided by its method, and by patterns of paths. */
export interface PathRules {
  /** Paths served by the local application, whatever the method, without waiting: files, health checks. */
  local: readonly string[];
  /** Paths that go to the primary, whatever the method: pages that write on GET. */
  primary: readonly string[];
}

/**
 *   local   to the local application at once
 *   read    to the local application, when its database has what this client wrote before
 *   write   to the primary's application
 */
export type Kind = "local" | "read" | "write";

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Idempotent methods (RFC 9110, 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set([...READS, "PUT", "DELETE"]);

export class Router {
  readonly #local: RegExp[];
  readonly #primary: RegExp[];

  constructor({ local, primary }: PathRules) {
    this.#local = local.map(patternOf);
    this.#primary = primary.map(patternOf);
  }

  kindOf(method: string, target: string): Kind {
    const path = target.split("?", 1)[0] ?? "/";
    if (this.#local.some((pattern) => pattern.test(path))) return "local";
    return READS.has(method) && !this.#primary.some((pattern) => pattern.test(path)) ? "read" : "write";
  }
}

/** Whether a request with an unknown outcome may be repeated. */
export function mayRepeat(method: string, idempotency_key: unknown): boolean {
  return IDEMPOTENT.has(method) || (typeof idempotency_key === "string" && idempotency_key !== "");
}

/** `*` matches any text; everything else is literal. */
export function patternOf(glob: string): RegExp {
  if (!/^[/*]/.test(glob)) throw new Error(`a path pattern begins with / or *, such as /static/* or *.css: ${glob}`);
  const source = glob.split("*").map((text) => text.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`);
}
