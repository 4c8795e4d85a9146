/** Licences of the packages in the lock file: which there are, and which may not be. */
import type { LockedPackage } from "./lock-file.ts";

/** Those that let us pass the package on under ours, and ask for no more than their text. */
const PERMISSIVE = ["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"];
/** Also for what is used to develop, and not passed on. */
const DEVELOPMENT = [...PERMISSIVE, "MPL-2.0"];
/** Packages whose package file has no licence field; the licence is in the text that they bring. */
const READ_BY_HAND: Record<string, string> = { limiter: "MIT" };

export const licenceOf = ({ name, license }: LockedPackage): string | undefined => license ?? READ_BY_HAND[name];

/** `(A OR B)` leaves the choice to whoever takes the package (SPDX). Any other expression is one licence that we do not know. */
const choicesOf = (licence: string): string[] => /^\(([^()]+)\)$/.exec(licence)?.[1]?.split(" OR ") ?? [licence];

/** Problems of licences. */
export function refusedLicences(packages: readonly LockedPackage[]): string[] {
  return packages.flatMap((one) => {
    const licence = licenceOf(one);
    const allowed = one.dev ? DEVELOPMENT : PERMISSIVE;
    if (licence !== undefined && choicesOf(licence).some((choice) => allowed.includes(choice))) return [];
    const found = licence === undefined ? "names no licence" : `has the licence ${licence}`;
    return [
      `${one.name} ${one.version} ${found}; allowed ${one.dev ? "for development" : "to be passed on"}: ${allowed.join(", ")}`,
    ];
  });
}

/** A line for each licence of what is passed on, with its packages. */
export function licenceList(packages: readonly LockedPackage[]): string {
  const passed_on = packages.filter(({ dev }) => !dev);
  const by = Map.groupBy(passed_on, (one) => licenceOf(one) ?? "unknown");
  const lines = [...by].map(([licence, list]) => {
    const names = [...new Set(list.map(({ name, version }) => `${name} ${version}`))].sort();
    return `${licence} (${names.length}): ${names.join(", ")}`;
  });
  return lines.sort().join("\n");
}
