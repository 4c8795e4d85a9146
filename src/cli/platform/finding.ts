export interface Finding {
  what: string;
  verdict: "ok" | "warn" | "fail";
  found: string;
  /** The command that mends it. */
  mend?: string;
}
