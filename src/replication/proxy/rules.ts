/** Where a request goes: decided by its method, and by patterns of paths. */
export interface PathRules {
  /** Paths that are served by the local application whatever the method, and never wait: files, health checks. */
  local: readonly string[];
  /** Paths that go to the primary whatever the method: pages that write when they are read. */
  primary: readonly string[];
}

/**
 *   local   to the local application at once
 *   read    to the local application, when its database has what this client wrote before
 *   write   to the primary's application
 */
export type Kind = "local" | "read" | "write";

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Doing them twice is as good as once (RFC 9110, 9.2.2). */
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

/** True when the request may be sent again although nobody knows whether it was done. */
export function mayRepeat(method: string, idempotency_key: unknown): boolean {
  return IDEMPOTENT.has(method) || (typeof idempotency_key === "string" && idempotency_key !== "");
}

/** `*` stands for any text; everything else for itself. */
export function patternOf(glob: string): RegExp {
  if (!/^[/*]/.test(glob)) throw new Error(`a path pattern begins with / or *, such as /static/* or *.css: ${glob}`);
  const source = glob.split("*").map((text) => text.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`);
}
