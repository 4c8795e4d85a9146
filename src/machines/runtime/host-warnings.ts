/** Warnings about config that the machine's host does not support. The machine runs without it. */
import type { HostFacts } from "#hosts/types.ts";
import type { MachineConfig } from "../types.ts";
import type { RuntimeDriver } from "./driver.ts";

/** One of several hosts reports capabilities in its facts; on a single host the driver does. */
export function hostWarnings(
  config: MachineConfig,
  facts: HostFacts | undefined,
  driver: Pick<RuntimeDriver, "capabilities">,
): string[] {
  const { swap_problem = "yes", sqlite_problem = "yes" } = driver.capabilities();
  const swap = facts?.swap ?? swap_problem;
  const sqlite = facts?.sqlite ?? olderHost(facts) ?? sqlite_problem;
  return [
    ...(config.init?.swap_size_mb && swap !== "yes"
      ? [`config.init.swap_size_mb: the machine gets no swap: ${swap}`]
      : []),
    ...(config.sqlite && sqlite !== "yes"
      ? [`config.sqlite: no node runs in the machine, so its databases are not replicated: ${sqlite}`]
      : []),
  ];
}

/** A host that tells its version, and nothing of SQLite. */
const olderHost = (facts: HostFacts | undefined): string | undefined =>
  facts?.version === undefined ? undefined : `its host runs Hangar ${facts.version}, which has none`;
