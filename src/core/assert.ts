/** Asserts an invariant of the program. Invalid input is refused with `fail` instead. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}

/** Closes a switch: the compiler reports a missing case. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}

/** The message of any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
