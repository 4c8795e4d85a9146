/**
 * The bare repositories of apps, on the disk of this process: `ORG/APP/repo.git`, with the platform's hook beside it and
 * the work folders of pushes, which are there as long as a push is. A work folder that is there at the start is of a push
 * that was interrupted: it goes, with the locks and temporary packs that Git left.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "#core/errors.ts";
import type { Confinement } from "./confinement.ts";
import { REPOSITORY, runGit } from "./git-command.ts";
import { HOOK } from "./hook.ts";
import type { GitLimits } from "./limits.ts";
import type { GitApp } from "./types.ts";

interface Parts {
  dir: string;
  confinement: Confinement;
  limits: GitLimits;
}

/** What a push was about to deploy when it was interrupted. */
export interface Interrupted {
  app_id: string;
  commits: string[];
  /** Branches that it was about to deploy as previews. */
  previews: string[];
}

/** Files of a push's work folder: what it is about to deploy. */
export const COMMITS = "commits";
export const PREVIEWS = "previews";

const LEFT_BY_GIT = /^(tmp_objdir-|incoming-|tmp_|\.tmp-)|\.lock$/;

export class Repositories {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Clears what interrupted pushes left. */
  start(): Interrupted[] {
    return this.#folders().flatMap(({ path, app_id }) => {
      const work = join(path, "work");
      const pushes = existsSync(work) ? readdirSync(work) : [];
      if (pushes.length === 0) return [];
      const [commits, previews] = [COMMITS, PREVIEWS].map((file) =>
        pushes.flatMap((name) => linesOf(join(work, name, file))),
      );
      clearLeftovers(join(path, "repo.git"));
      rmSync(join(path, "repo.new"), { recursive: true, force: true });
      for (const name of pushes) rmSync(join(work, name), { recursive: true, force: true });
      return [{ app_id, commits: commits ?? [], previews: previews ?? [] }];
    });
  }

  folder({ org_id, id }: GitApp): string {
    return join(this.#parts.dir, org_id, id);
  }

  has(app: GitApp): boolean {
    return existsSync(join(this.folder(app), "repo.git"));
  }

  /** The app's folder, with a repository whose HEAD is this branch. */
  async open(app: GitApp, branch: string): Promise<string> {
    const { confinement, limits } = this.#parts;
    const dir = this.folder(app);
    // All but the repository is ours: a Git that was taken over cannot put a link where we write.
    for (const path of [dir, join(dir, "hooks"), join(dir, "work")]) openFolder(path);
    writeFileSync(join(dir, "hooks/pre-receive"), HOOK);
    chmodSync(join(dir, "hooks/pre-receive"), 0o755);
    if (!this.has(app)) {
      await rm(join(dir, "repo.new"), { recursive: true, force: true });
      openFolder(join(dir, "repo.new"));
      confinement.adopt(join(dir, "repo.new"));
      const args = ["init", "--quiet", "--bare", "--template=", `--initial-branch=${branch}`, "repo.new"];
      await runGit(confinement, { dir, limits, args });
      await rename(join(dir, "repo.new"), join(dir, "repo.git"));
    } else if (headOf(join(dir, "repo.git")) !== branch) {
      await runGit(confinement, { dir, limits, args: [inside, "symbolic-ref", "HEAD", `refs/heads/${branch}`] });
    }
    return dir;
  }

  /** Bytes that a push may still add. Repacks a full repository, and fails when that does not help. */
  async room(app: GitApp): Promise<number> {
    const { limits, dir } = this.#parts;
    const { bavail, bsize } = await statfs(dir);
    if (bavail * bsize < limits.repository_disk_kept_bytes)
      fail("storage_full", "the disk has no room for a push (limit repository_disk_kept_bytes)", { retry_after_s: 60 });
    const of_org = limits.org_repositories_bytes - (await bytesOf(join(dir, app.org_id)));
    if (of_org <= 0)
      fail(
        "limit_reached",
        `the Git repositories of this organization have ${limits.org_repositories_bytes} bytes (limit org_repositories_bytes)`,
        { hint: "delete unused branches or apps" },
      );
    const left = limits.repository_bytes - (await bytesOf(this.folder(app)));
    if (left > limits.repository_bytes / 2) return Math.min(left, of_org);
    // What nothing reaches any more, after a forced push for example, goes before it is in the way.
    if (this.has(app)) await this.repack(app);
    const after = limits.repository_bytes - (await bytesOf(this.folder(app)));
    if (after > 0) return Math.min(after, of_org);
    return fail(
      "limit_reached",
      `the Git repository of ${app.name} has ${limits.repository_bytes} bytes (limit repository_bytes)`,
      { hint: "delete branches with large files: git push --delete" },
    );
  }

  async repackIfNeeded(app: GitApp): Promise<void> {
    const packs = await readdir(join(this.folder(app), "repo.git/objects/pack")).catch(() => []);
    if (packs.filter((name) => name.endsWith(".pack")).length > this.#parts.limits.packs_kept) await this.repack(app);
  }

  /** One pack of what branches and tags reach; nothing else stays. */
  async repack(app: GitApp): Promise<void> {
    const { confinement, limits } = this.#parts;
    const dir = this.folder(app);
    await runGit(confinement, { dir, limits, args: [inside, "repack", "-a", "-d", "-q"] });
    await runGit(confinement, { dir, limits, args: [inside, "prune", "--expire=now"] });
  }

  bytes(app: GitApp): Promise<number> {
    return bytesOf(this.folder(app));
  }

  async remove({ org_id, id }: { org_id: string; id: string }): Promise<void> {
    await rm(join(this.#parts.dir, org_id, id), { recursive: true, force: true });
  }

  /** Removes repositories of apps that do not exist. */
  async sweep(exists: (app_id: string) => Promise<boolean>): Promise<void> {
    for (const { org_id, app_id } of this.#folders())
      if (!(await exists(app_id))) await this.remove({ org_id, id: app_id });
  }

  #folders(): { path: string; org_id: string; app_id: string }[] {
    const { dir } = this.#parts;
    const names = (path: string): string[] =>
      existsSync(path)
        ? readdirSync(path, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []))
        : [];
    return names(dir).flatMap((org_id) =>
      names(join(dir, org_id)).map((app_id) => ({ path: join(dir, org_id, app_id), org_id, app_id })),
    );
  }
}

/** Confined programs may look into it; outside, the data dir is closed to them. */
export function openFolder(path: string): void {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o755);
}

const inside = `--git-dir=${REPOSITORY}`;

const headOf = (repository: string): string =>
  readFileSync(join(repository, "HEAD"), "utf8")
    .replace(/^ref: refs\/heads\//, "")
    .trim();

const linesOf = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];

/** Locks and temporary files of a Git that was killed; none runs now. */
function clearLeftovers(repository: string): void {
  if (!existsSync(repository)) return;
  for (const entry of readdirSync(repository, { recursive: true, withFileTypes: true })) {
    const is_ref = entry.parentPath.includes("/refs/");
    if (LEFT_BY_GIT.test(entry.name) && !(is_ref && !entry.name.endsWith(".lock")))
      rmSync(join(entry.parentPath, entry.name), { recursive: true, force: true });
  }
}

async function bytesOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries)
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  return bytes;
}
