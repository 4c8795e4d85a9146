/** Glob patterns: `*`, `?` and `[abc]` within a name, `**` for any number of folders. In time of length times length. */

/** Without a slash it is about the name alone, otherwise about the path below the folder that is listed. */
export function matcherOf(pattern: string): (path: string) => boolean {
  const wanted = pattern.split("/");
  if (wanted.length === 1) return (path) => nameMatches(wanted[0] ?? "", path.slice(path.lastIndexOf("/") + 1));
  return (path) =>
    wildMatches(
      wanted,
      path.split("/"),
      (one) => one === "**",
      (one, name) => nameMatches(one, name),
    );
}

const nameMatches = (pattern: string, name: string): boolean =>
  wildMatches(
    pattern.match(/\[[^\]]+\]|[\s\S]/gu) ?? [],
    name.match(/[\s\S]/gu) ?? [],
    (one) => one === "*",
    (one, letter) => one === "?" || one === letter || (one.length > 2 && inSet(one.slice(1, -1), letter)),
  );

function inSet(set: string, letter: string): boolean {
  const not = set.startsWith("!") || set.startsWith("^");
  const letters = not ? set.slice(1) : set;
  const ranges = letters.match(/.-.|./gsu) ?? [];
  return (
    ranges.some((one) => (one.length === 3 ? letter >= (one[0] ?? "") && letter <= (one[2] ?? "") : one === letter)) !==
    not
  );
}

/** Goes back to the last wildcard only, which is enough. */
function wildMatches(
  pattern: readonly string[],
  text: readonly string[],
  isWild: (one: string) => boolean,
  isSame: (one: string, other: string) => boolean,
): boolean {
  let [at, of, wild, from] = [0, 0, -1, 0];
  while (at < text.length) {
    const [one, other] = [pattern[of], text[at]];
    if (one !== undefined && isWild(one)) {
      wild = of++;
      from = at;
    } else if (one !== undefined && other !== undefined && isSame(one, other)) {
      of++;
      at++;
    } else if (wild >= 0) {
      of = wild + 1;
      at = ++from;
    } else return false;
  }
  return pattern.slice(of).every(isWild);
}
