/** Rewrites command lines of other tools, mainly flyctl, and other ways to say it, to the equivalent commands here. */

const REWRITES: readonly (readonly [typed: string, ours: string])[] = [
  ["ssh console", "ssh"],
  ["scale count", "scale"],
  ["scale show", "ps"],
  ["ips allocate-v4", "ips allocate --type v4"],
  ["ips allocate-v6", "ips allocate --type v6"],
  ["certs create", "certs add"],
  ["machine status", "machines show"],
  ["machines status", "machines show"],
  ["version", "--version"],
  // `logs` takes the name of an app, so not `logs drains` alone.
  ["logs drains create", "drains create"],
  ["logs drains list", "drains list"],
  ["logs drains delete", "drains delete"],
  ["logs drains test", "drains test"],
];

/** The equivalent command line here. */
export function rewrite(typed: readonly string[]): readonly string[] {
  for (const [theirs, ours] of REWRITES) {
    const words = theirs.split(" ");
    if (words.every((word, at) => typed[at] === word)) return [...ours.split(" "), ...typed.slice(words.length)];
  }
  return typed;
}
