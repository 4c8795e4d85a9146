export interface Finding {
  what: string;
  verdict: "ok" | "warn" | "fail";
  found: string;
  /** The command that fixes it. */
  mend?: string;
}
