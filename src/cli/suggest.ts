/** Suggests commands for typos and for commands of other tools. */
import { edits } from "#core/words.ts";

/** Commands of other tools and common synonyms, with the command here. */
const SYNONYMS: Record<string, string> = {
  attach: "logs --follow",
  checks: "status",
  config: "export",
  console: "ssh",
  create: "launch",
  destroy: "machines destroy or apps delete",
  domains: "certs",
  exec: "machines exec",
  history: "releases",
  info: "status",
  init: "launch",
  inspect: "machines show",
  kill: "machines stop",
  list: "ps",
  login: "context add",
  ls: "ps",
  mount: "volumes",
  open: "services",
  pull: "images pull",
  push: "registry",
  remove: "machines destroy or apps delete",
  restart: "machines restart",
  resume: "machines start",
  rm: "machines destroy or apps delete",
  shell: "ssh",
  start: "machines start",
  stop: "machines stop",
  suspend: "machines suspend",
  tail: "logs --follow",
  tunnel: "proxy",
};

/** Maximum edit distance: 1 in a short word, 2 in a longer one, 0 for two letters (`ps` is not a typo of `ips`). */
const maxDistance = (word: string): number => (word.length <= 2 ? 0 : word.length <= 5 ? 1 : 2);

/** ` (Did you mean …?)` on a line of its own, or nothing. Synonyms stand for whole commands only. */
export function suggestion(typed: string, known: readonly string[], { synonyms }: { synonyms: boolean }): string {
  const begun = typed.length >= 3 ? known.filter((word) => word.startsWith(typed)) : [];
  const near = known
    .map((word) => ({ word, distance: edits(typed, word) }))
    .filter(({ distance }) => distance <= maxDistance(typed))
    .sort((a, b) => a.distance - b.distance);
  const best = near.filter(({ distance }) => distance === near[0]?.distance).map(({ word }) => word);
  const synonym = synonyms && Object.hasOwn(SYNONYMS, typed) ? SYNONYMS[typed] : undefined;
  const meant = synonym ?? (best.length > 0 ? best : begun).slice(0, 3).join(" or ");
  return meant ? `\n(Did you mean ${meant}?)` : "";
}
