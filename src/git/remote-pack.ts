/** What a confined Git does with a pack from elsewhere: checks it, keeps it, and names its commit. */
import { once } from "node:events";
import type { Confinement } from "./confinement.ts";
import { collected, GitFailed, REPOSITORY, runGit, startGit } from "./git-command.ts";
import type { GitLimits } from "./limits.ts";

interface Git {
  confinement: Confinement;
  limits: GitLimits;
  dir: string;
  signal: AbortSignal;
}

/** Branches and tags with what they stand for. */
export async function refsOf({ confinement, ...git }: Git): Promise<Map<string, string>> {
  const args = [`--git-dir=${REPOSITORY}`, "for-each-ref", "--format=%(objectname) %(refname)"];
  const refs = new Map<string, string>();
  await runGit(confinement, { ...git, args }, (line) => {
    const [id = "", ref = ""] = line.split(" ");
    refs.set(ref, id);
  });
  return refs;
}

/** Points the ref to the commit, or deletes it. */
export async function setRef({ confinement, ...git }: Git, ref: string, commit: string | undefined): Promise<void> {
  const change = commit === undefined ? ["-d", ref] : [ref, commit];
  await runGit(confinement, { ...git, args: [`--git-dir=${REPOSITORY}`, "update-ref", ...change] });
}

/** Keeps a pack whose objects are sound, if the commit with all that it needs is there then. */
export async function fetchPack(
  git: Git,
  pack: AsyncIterable<Uint8Array>,
  { head, room }: { head: string; room: number },
): Promise<void> {
  const { confinement, dir, signal } = git;
  const args = [
    `--git-dir=${REPOSITORY}`,
    "index-pack",
    "--stdin",
    "--fix-thin",
    "--strict",
    `--max-input-size=${room}`,
  ];
  const stop = new AbortController();
  const child = startGit(confinement, { dir, args, signal: AbortSignal.any([signal, stop.signal]) });
  const problem = collected(child.stderr);
  child.stdout?.resume();
  child.stdin?.on("error", () => {});
  const ended = once(child, "close") as Promise<[number | null]>;
  ended.catch(() => {});
  try {
    for await (const piece of pack) {
      if (!child.stdin?.writable) break;
      if (!child.stdin.write(piece)) await Promise.race([once(child.stdin, "drain"), ended]).catch(() => {});
    }
    child.stdin?.end();
    const [code] = await ended;
    if (code !== 0) throw new GitFailed((await problem) || `git index-pack ended with code ${code}`);
  } finally {
    stop.abort();
    await ended.catch(() => {});
  }
  // Named at once: a repack keeps what has a name.
  await setRef(git, "refs/hangar/fetched", head);
  const rest = ["rev-list", "--objects", "--quiet", head, "--not", "--branches", "--tags"];
  await runGit(git.confinement, { limits: git.limits, dir, signal, args: [`--git-dir=${REPOSITORY}`, ...rest] });
}
