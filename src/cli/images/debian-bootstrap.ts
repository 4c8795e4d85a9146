/** A root file system of Debian's packages, made by mmdebstrap; the same packages give the same bytes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { ClientError } from "#client/client.ts";
import { type Context, UsageError } from "../verb.ts";
import type { BaseRecipe } from "./base-recipes.ts";

/** Upper limit of file times in an image. Any fixed time will do; SOURCE_DATE_EPOCH sets another. */
export const EPOCH_S = Number(process.env["SOURCE_DATE_EPOCH"] ?? 1_672_531_200);

const SOURCES = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
/** Excluded documentation; only licences stay. */
const LEFT_OUT = ["/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/doc/*"];
const KEPT_FILES = ["/usr/share/doc/*/copyright"];
/** Output lines of mmdebstrap that are shown when it fails. */
const LAST_LINES = 15;

export interface Bootstrapped {
  /** A temporary folder that the caller removes. */
  folder: string;
  file: string;
  packages: number;
}

/** The name of this system's release, when it is Debian. */
export async function hostSuite(): Promise<string | undefined> {
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  return /^ID=debian$/m.test(text) ? /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1] : undefined;
}

interface Wanted {
  suite: string;
  mirror: string | undefined;
  include: readonly string[];
}

export async function bootstrap({ say }: Context, recipe: BaseRecipe, wanted: Wanted): Promise<Bootstrapped> {
  for (const word of [wanted.suite, ...wanted.include])
    if (!/^[a-z0-9][a-z0-9.+-]*$/.test(word)) throw new UsageError(`${word} is neither a release nor a package`);
  const folder = await mkdtemp(join(tmpdir(), "hangar-base-"));
  const file = join(folder, "root.tar");
  const list = join(folder, "packages");
  await placed(join(folder, "before"), recipe.before ?? {});
  await placed(join(folder, "files"), recipe.files ?? {});
  const own = wanted.suite === (await hostSuite()) ? SOURCES.find((path) => existsSync(path)) : undefined;
  const mirror = wanted.mirror ?? own;
  const copy = (from: string): string => `cp -R "${join(folder, from)}/." "$1/"`;
  const args = [
    "--variant=minbase",
    `--include=${[...recipe.packages, ...wanted.include].join(",")}`,
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=force-confold",
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
    ...KEPT_FILES.map((path) => `--dpkgopt=path-include=${path}`),
    `--essential-hook=${copy("before")}`,
    `--customize-hook=${copy("files")}`,
    ...(recipe.hooks ?? []).map((line) => `--customize-hook=${line}`),
    `--customize-hook=dpkg-query --admindir="$1/var/lib/dpkg" -W > "${list}"`,
    wanted.suite,
    file,
    ...(mirror === undefined ? [] : [mirror]),
  ];
  say(`making Debian ${wanted.suite} with ${recipe.packages.join(", ")}`);
  await runMmdebstrap(args, say).catch(async (thrown: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw thrown;
  });
  const packages = (await readFile(list, "utf8")).trim().split("\n").length;
  return { folder, file, packages };
}

/** Files below a folder, readable by all and, when they begin as programs do, executable. */
async function placed(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [path, content] of Object.entries(files)) {
    const at = join(folder, path);
    await mkdir(dirname(at), { recursive: true, mode: 0o755 });
    await writeFile(at, content, { mode: content.startsWith("#!") ? 0o755 : 0o644 });
  }
}

async function runMmdebstrap(args: readonly string[], say: Context["say"]): Promise<void> {
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(EPOCH_S), LC_ALL: "C.UTF-8" };
  const child = spawn("mmdebstrap", args, { env, stdio: ["ignore", "ignore", "pipe"] });
  const missing = once(child, "error").then(([error]) => {
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? notInstalled() : (error as Error);
  });
  const last: string[] = [];
  const read = async (): Promise<void> => {
    for await (const line of createInterface({ input: child.stderr })) {
      last.push(line);
      if (last.length > LAST_LINES) last.shift();
      // Only mmdebstrap's own steps, not the output of apt and dpkg.
      const step = /^I: (.*)$/.exec(line)?.[1];
      if (step !== undefined) say(step);
    }
  };
  const exited = once(child, "close") as Promise<[number | null]>;
  const [status] = await Promise.race([Promise.all([exited, read()]).then(([result]) => result), missing]);
  if (status === 0) return;
  const error = `mmdebstrap ended with ${status ?? "a signal"}:\n${last.join("\n")}`;
  throw new ClientError(0, { error, hint: "it needs root, or user namespaces, and the way to a mirror (--mirror)" });
}

const notInstalled = (): ClientError =>
  new ClientError(0, {
    error: "mmdebstrap is not installed here: it makes base images of Debian's packages",
    hint: "apt-get install mmdebstrap, or use an image of a registry",
  });
