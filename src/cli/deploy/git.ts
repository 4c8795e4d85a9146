/** The Git commit of a folder, to be recorded with its release. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Option } from "../options.ts";
import { type Input, textOption } from "../verb.ts";

export interface GitState {
  git_commit?: string;
  git_branch?: string;
}

const run = promisify(execFile);
const GIT_MS = 10_000;

export const GIT_OPTIONS: readonly Option[] = [
  ["--git-commit <id>", "the commit that is deployed (default: the folder's)"],
  ["--git-branch <name>", "its branch (default: the folder's)"],
];

/**
 * The commit given by options, else that of the folder. Empty without a repository, a commit or Git: a folder can be
 * deployed without them.
 */
export async function gitState(input: Input, folder: string): Promise<GitState> {
  const git_commit = textOption(input, "gitCommit");
  const git_branch = textOption(input, "gitBranch");
  const named = { ...(git_commit ? { git_commit } : {}), ...(git_branch ? { git_branch } : {}) };
  return git_commit ? named : { ...(await folderState(folder)), ...named };
}

async function folderState(folder: string): Promise<GitState> {
  const git = async (...args: string[]): Promise<string> =>
    (await run("git", ["-C", folder, ...args], { timeout: GIT_MS, maxBuffer: 64 << 20 })).stdout.trim();
  try {
    const [commit, branch, changed] = await Promise.all([
      git("rev-parse", "--verify", "HEAD"),
      git("rev-parse", "--abbrev-ref", "HEAD"),
      git("status", "--porcelain", "--", "."),
    ]);
    return {
      git_commit: changed === "" ? commit : `${commit}-dirty`,
      // A checkout of a commit instead of a branch.
      ...(branch === "HEAD" ? {} : { git_branch: branch }),
    };
  } catch {
    return {};
  }
}
