/** Where one is: everything after `#` in the address, so that the platform serves one page and links can be shared. */
import { Cell } from "./cell.ts";

export interface Place {
  /** `machines`, `web`, `d891…` of `#/machines/web/d891…`. */
  path: readonly string[];
  query: URLSearchParams;
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const place = new Cell(read());
addEventListener("hashchange", () => place.set(read()));

/** Builds a route: `to("machines", app, id)`. */
export const to = (...path: string[]): string => `#/${path.map(encodeURIComponent).join("/")}`;

export function go(...path: string[]): void {
  location.hash = to(...path);
}

/** Updates the query of the route without a history entry. */
export function remember(query: Record<string, string | readonly string[]>): void {
  const all = Object.entries(query).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  const given = new URLSearchParams(all.filter(([, value]) => value !== ""));
  const [path = "#/"] = location.hash.split("?");
  history.replaceState(null, "", `${path || "#/"}${given.size > 0 ? `?${given}` : ""}`);
}
