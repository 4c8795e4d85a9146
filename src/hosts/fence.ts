/**
 * What stops the machines of a host when its lease is over, and lets them go on. The driver of the host has one; `sim`
 * runs nothing. Every machine is fenced unless it is exempt: then no other host may start it, and it runs on.
 */
export interface Fence {
  /** Everything may run for so long without a further word, whatever becomes of this process. */
  extend(left_ms: number): void;
  /** Nothing that is fenced runs when this has resolved. */
  shut(): Promise<void>;
  /** Everything goes on, but for these machines, which have gone elsewhere: nothing of them runs another step. */
  open(gone: readonly string[]): Promise<void>;
  /** Leaves a machine alone from now on, until it is included again or begins anew. */
  exempt(machine_id: string): void;
  /** The other way round; it does not stop a machine that runs without a lease at the moment. */
  include(machine_id: string): void;
  /** Those it leaves alone, as an earlier process of ours may have said. */
  exempted(): string[];
}
