/** Which of the routes that an app names (`http_options.routes`) a request's path belongs to. */

/** The label of paths that no route matches. */
export const OTHER_ROUTE = "other";

/** `:name` matches one segment, a final `*` the rest; the first match counts. */
export class PathRoutes {
  readonly #patterns: { route: string; pattern: RegExp }[];

  constructor(routes: readonly string[]) {
    this.#patterns = routes.map((route) => ({ route, pattern: patternOf(route) }));
  }

  find(target: string): string {
    const path = pathOf(target);
    return this.#patterns.find(({ pattern }) => pattern.test(path))?.route ?? OTHER_ROUTE;
  }
}

function patternOf(route: string): RegExp {
  const segments = route.split("/").map((segment, at, all) => {
    if (segment === "*" && at === all.length - 1) return ".*";
    return segment.startsWith(":") ? "[^/]+" : segment.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${segments.join("/")}$`);
}

/** The path of a request target, without the query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}
