/** Rewrites command lines of other tools, mainly flyctl, to the equivalent commands here. */

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
];

/** The equivalent command line here. */
export function rewrite(typed: readonly string[]): readonly string[] {
  for (const [theirs, ours] of REWRITES) {
    const words = theirs.split(" ");
    if (words.every((word, at) => typed[at] === word)) return [...ours.split(" "), ...typed.slice(words.length)];
  }
  return typed;
}
