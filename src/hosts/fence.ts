/**
 * What stops the machines of a host when its lease is over, and lets them go on. The driver of the host has one; `sim`
 * runs nothing. Every machine is fenced unless it is exempt: then no other host may start it, and it runs on.
 */
export interface Fence {
  /** Machines may run for this long without another call, even if this process dies. */
  extend(left_ms: number): void;
  /** Resolves when no fenced machine runs. */
  shut(): Promise<void>;
  /** Thaws all machines except these, which moved elsewhere and never run again here. */
  open(removed: readonly string[]): Promise<void>;
  /** Exempts a machine until it is included again or boots anew. */
  exempt(machine_id: string): void;
  /** Ends the exemption; it does not stop a machine that runs without a lease at the moment. */
  include(machine_id: string): void;
  /** Exempt machines, possibly from an earlier process of ours. */
  exempted(): string[];
}
