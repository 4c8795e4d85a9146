/**
 * Work that is cut into steps, so that whoever does it can do other things in between: others must not wait for it.
 * `WAIT`: the next step is of no use before a while.
 */
export const WAIT = "wait";
export type Steps<T> = Generator<typeof WAIT | undefined, T>;

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
