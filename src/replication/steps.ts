/**
 * Work that is divided into steps, so that its runner can serve others in between. `WAIT`: the next step should be
 * delayed.
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
