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
  const swap = facts?.swap ?? driver.capabilities().swap_problem ?? "yes";
  if (!config.init?.swap_size_mb || swap === "yes") return [];
  return [`config.init.swap_size_mb: the machine gets no swap: ${swap}`];
}
