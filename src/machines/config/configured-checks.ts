import type { Machine } from "../types.ts";
import type { CheckConfig } from "./config-schema.ts";

/**
 * Returns all checks of a machine by name: top-level ones by their own, those of services by a generated one. The
 * number in it runs over all services, because two of them may check the same port in different ways.
 */
export function checksOf({ config }: Pick<Machine, "config">): [string, CheckConfig][] {
  const served = (config.services ?? []).flatMap(({ checks, internal_port }) =>
    (checks ?? []).map((check) => ({ ...check, port: check.port ?? internal_port })),
  );
  const named = served.map((check, index): [string, CheckConfig] => [
    `servicecheck-${String(index).padStart(2, "0")}-${check.type ?? "tcp"}-${check.port}`,
    check,
  ]);
  return [...Object.entries(config.checks ?? {}), ...named];
}

export const checkNames = (machine: Pick<Machine, "config">): string[] => checksOf(machine).map(([name]) => name);

/** The checks that decide whether a machine is healthy and gets requests; the others are informational. */
export const readinessChecks = (machine: Pick<Machine, "config">): string[] =>
  checksOf(machine).flatMap(([name, { kind }]) => (kind === "informational" ? [] : [name]));
