import type { Matcher } from "../../source.ts";

/** Which series a query for names and labels covers. */
export interface Scope {
  /** All when absent. */
  selector?: readonly (readonly Matcher[])[];
  start_ms: number;
  end_ms: number;
  /** Answers at most so many; 0 or absent is all. */
  limit?: number;
}
