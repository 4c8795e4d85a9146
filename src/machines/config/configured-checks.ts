import type { Machine } from "../types.ts";
import type { CheckConfig } from "./config-schema.ts";

/**
 * Every check of a machine with the name it is known by: those at the top of its config by their own, those of services by
 * a made-up one. It counts over all services, because two of them may look at the same port, each in its own way.
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

/** The checks that a machine has to pass before it counts as healthy and gets requests; the others are only shown. */
export const readinessChecks = (machine: Pick<Machine, "config">): string[] =>
  checksOf(machine).flatMap(([name, { kind }]) => (kind === "informational" ? [] : [name]));
