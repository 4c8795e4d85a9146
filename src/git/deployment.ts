/**
 * Deploys a commit the way a person does: its files in a folder, `hangar deploy` in it. The command runs confined, as Git
 * does, because it reads files that a tenant wrote; what it may do is what its token allows (ADR 0061).
 */
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { APP_DIR, type Confinement } from "./confinement.ts";
import { REPOSITORY, runGit } from "./git-command.ts";
import { PushRefused } from "./hook.ts";
import type { GitLimits } from "./limits.ts";

export interface Deployment {
  app_name: string;
  branch: string;
  commit: string;
  /** The folder of the app, and that of the push in it. */
  dir: string;
  work: string;
  /** The folder of objects that are not in the repository yet, or empty. */
  objects: string;
  token: string;
  /** More options of `hangar deploy`. */
  options: readonly string[];
  say(line: string): void;
  signal: AbortSignal;
}

interface Parts {
  confinement: Confinement;
  limits: GitLimits;
  /** The platform's own address. */
  url(): string;
}

const MESSAGE_CHARS = 900;
const SUBMODULE = "160000";

/** Resolves with whether it was deployed. */
export async function deployCommit(parts: Parts, wanted: Deployment): Promise<boolean> {
  const { confinement, limits } = parts;
  const { work, dir, objects, commit, say, signal } = wanted;
  const env = objectsEnv(objects);
  const git = (args: string[], more: object, onRecord?: (record: string) => void): Promise<void> =>
    runGit(confinement, { dir, limits, signal, env, args: [`--git-dir=${REPOSITORY}`, ...args], ...more }, onRecord);
  const message = await messageOf(git, commit);
  await checkTree(git, commit, { limits, say });
  const own = join(work, commit);
  const tree = join(own, "tree");
  mkdirSync(tree, { recursive: true });
  for (const path of [own, tree]) confinement.adopt(path);
  const inside = own.replace(dir, APP_DIR);
  try {
    await git([`--work-tree=${inside}/tree`, "read-tree", "--reset", "-u", commit], {
      env: { ...env, GIT_INDEX_FILE: `${inside}/index` },
    });
    return await runDeploy(parts, wanted, { tree, message });
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

/** New objects are beside the repository until the push is accepted. */
const objectsEnv = (objects: string): Record<string, string> =>
  objects === "" ? {} : { GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: `${REPOSITORY}/objects` };

type Git = (args: string[], more: object, onRecord?: (record: string) => void) => Promise<void>;

/** The commit's subject and author. */
async function messageOf(git: Git, commit: string): Promise<string> {
  const found: string[] = [];
  await git(["log", "-1", "--no-show-signature", "--format=%s (%an)", commit, "--"], {}, (line) => found.push(line));
  return (found[0] ?? "").slice(0, MESSAGE_CHARS);
}

/** A small pack can hold a tree of any size: it is counted before a file is written. */
async function checkTree(
  git: Git,
  commit: string,
  { limits, say }: { limits: GitLimits; say: Deployment["say"] },
): Promise<void> {
  let [entries, bytes, submodules] = [0, 0, 0];
  await git(["ls-tree", "-r", "-l", "-z", "--full-tree", commit], { separator: "\0" }, (record) => {
    const [mode, , , size = "0"] = record.split(/[ \t]+/, 4);
    if (mode === SUBMODULE) submodules++;
    entries++;
    bytes += Number(size) || 0;
    if (entries > limits.tree_entries)
      throw new PushRefused(`The commit has more than ${limits.tree_entries} files (limit tree_entries).`);
    if (bytes > limits.tree_bytes)
      throw new PushRefused(`The files of the commit have more than ${limits.tree_bytes} bytes (limit tree_bytes).`);
  });
  if (submodules > 0) say("Submodules are not fetched: their folders are empty.");
}

async function runDeploy(
  { confinement, url }: Parts,
  { app_name, branch, commit, token, options, say, signal }: Deployment,
  { tree, message }: { tree: string; message: string },
): Promise<boolean> {
  const child = confinement.spawn({
    program: "hangar",
    args: [
      "deploy",
      `--app=${app_name}`,
      `--git-commit=${commit}`,
      `--git-branch=${branch}`,
      `--message=${message}`,
      ...options,
    ],
    // It sees the files of this commit and nothing else, not even the repository.
    dir: tree,
    env: { HANGAR_URL: url(), HANGAR_TOKEN: token, HANGAR_DATA_DIR: "/nonexistent", NO_COLOR: "1" },
    has_network: true,
    signal,
  });
  child.stdin?.end();
  const ended = once(child, "close") as Promise<[number | null]>;
  ended.catch(() => {});
  const forward = async (stream: Readable): Promise<void> => {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }))
      say(line.replaceAll(`${APP_DIR}/`, "").replaceAll(APP_DIR, "the commit"));
  };
  await Promise.all([forward(child.stdout as Readable), forward(child.stderr as Readable)]);
  const [code] = await ended;
  return code === 0;
}
