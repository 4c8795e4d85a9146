/** Deadline of a call, on the monotonic clock. */
export type Deadline = number;

export const deadlineIn = (ms: number): Deadline => performance.now() + ms;
export const timeLeft = (deadline: Deadline): number => Math.max(0, deadline - performance.now());

/** A call exceeded its deadline. Its error for the caller names the time since the call began, retries included. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  /** `connection`: no response. `pool`: no free connection. */
  readonly waited_for: "connection" | "pool";

  constructor(waited_for: DeadlineError["waited_for"]) {
    super(waited_for === "pool" ? "no connection was free" : "the database did not answer");
    this.waited_for = waited_for;
  }
}
