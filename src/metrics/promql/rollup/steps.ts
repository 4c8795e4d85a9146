export interface Steps {
  start_ms: number;
  step_ms: number;
  points: number;
  /** 0 when the query names no window. */
  window_ms: number;
  /** One moment, not a range: then the step says how far back a sample counts. */
  instant: boolean;
  /** Without a window of its own, a function that needs two samples may look back far enough to see them. */
  adjusts: boolean;
}
