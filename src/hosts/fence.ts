/** What stops everything that runs on a host, and lets it go on. The driver of the host has one; `sim` runs nothing. */
export interface Fence {
  /** Everything may run for so long without a further word, whatever becomes of this process. */
  extend(left_ms: number): void;
  /** Nothing runs when this has resolved. */
  shut(): Promise<void>;
  /** Everything goes on, but for these machines, which have gone elsewhere: nothing of them runs another step. */
  open(gone: readonly string[]): Promise<void>;
}
