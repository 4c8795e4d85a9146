/** Work that is cut into steps, so that whoever does it can do other things in between: others must not wait for it. */
export type Steps<T> = Generator<void, T>;

/** Does all of it at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
