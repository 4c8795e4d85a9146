/** A work folder with Debian's Git, for tests that push to a platform. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { NamespaceConfinement } from "#drivers/git/confinement.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import { shell, tempDir } from "../support.ts";

/** Why Git cannot be confined on this box, or undefined. */
export const gitMissing = (): string | undefined =>
  new NamespaceConfinement({ root: "/nonexistent", installed: "/nonexistent", limits: GIT_LIMITS }).problem();

export interface Ran {
  status: number | null;
  /** All that was printed; what Git pads `remote:` lines with is left out. */
  text: string;
}

export class GitWork {
  readonly dir = tempDir();
  readonly #env: Record<string, string>;

  constructor(env: Record<string, string> = {}) {
    const who = { NAME: "Ada", EMAIL: "ada@example.com" };
    const people = Object.entries(who).flatMap(([key, value]) => [
      [`GIT_AUTHOR_${key}`, value],
      [`GIT_COMMITTER_${key}`, value],
    ]);
    this.#env = { ...(Object.fromEntries(people) as Record<string, string>), GIT_CONFIG_GLOBAL: "/dev/null", ...env };
    this.git("init", "-q", "-b", "main", ".");
  }

  /** Without waiting for anything else: not for what talks to a platform in this process. */
  git(...args: string[]): string {
    const env = { ...process.env, ...this.#env };
    const { status, stdout, stderr } = spawnSync("git", args, { cwd: this.dir, env, encoding: "utf8" });
    assert.equal(status, 0, `git ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  }

  write(files: Record<string, string>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.dir, path)), { recursive: true });
      writeFileSync(join(this.dir, path), text);
    }
  }

  /** The id of a commit of all files. */
  commit(subject: string, files: Record<string, string> = {}): string {
    this.write(files);
    this.git("add", "--all");
    this.git("commit", "-q", "--allow-empty", "-m", subject);
    return this.git("rev-parse", "HEAD");
  }

  /** A Git object of any bytes, which Git itself would refuse to make. */
  object(type: "tree" | "commit", bytes: Buffer): string {
    const args = ["hash-object", "-w", "--literally", "-t", type, "--stdin"];
    const { stdout, stderr } = spawnSync("git", args, { cwd: this.dir, input: bytes, encoding: "utf8" });
    assert.match(stdout, /^[0-9a-f]{40}\n$/, stderr);
    return stdout.trim();
  }

  async run(line: string, env: Record<string, string> = {}): Promise<Ran> {
    const { status, stdout, stderr } = await shell(line, { cwd: this.dir, HOME: this.dir, ...this.#env, ...env });
    return { status, text: `${stdout}${stderr}`.replaceAll(/ +$/gm, "") };
  }
}

/** The address of an app's repository, with this token. */
export const repositoryUrl = (base_url: string, token: string, app = "web"): string =>
  `${base_url.replace("//", `//anyone:${token}@`)}/git/${app}`;
