/**
 * Root file systems from Debian packages: programs, libraries and file layout of a third party. `packageRoot` copies
 * packages that this box has installed, which takes a second; `bootstrapRoot` builds a whole Debian with mmdebstrap.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Since Debian 12 these are links into /usr, while package lists still name files below them. */
const MERGED = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] as const;
const UNNEEDED = /^\/usr\/share\/(doc|man|locale|info|lintian|bug|perl5?|icons)\//;

function run(program: string, args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", input, maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${program} ${args.join(" ").slice(0, 200)}: ${stderr || stdout}`);
  return stdout;
}

/** Installed packages, and the names they depend on. */
function installed(): Map<string, string[]> {
  const format = ["Package", "db:Status-Status", "Depends", "Pre-Depends"].map((name) => `\${${name}}`).join("\t");
  const lines = run("dpkg-query", ["-W", "-f", `${format}\n`]);
  const rows = lines.split("\n").map((line) => line.split("\t") as [string, string, string, string]);
  return new Map(
    rows
      .filter(([, status]) => status === "installed")
      .map(([name, , ...depends]) => [
        name,
        [...depends.join(", ").matchAll(/(?<=^|[,|] *)[a-z0-9][a-z0-9.+-]+/g)].map(([one]) => one),
      ]),
  );
}

/** Why no root can be made of these packages here, or undefined. */
export function packagesMissing(packages: readonly string[]): string | undefined {
  if (spawnSync("dpkg-query", ["--version"]).status !== 0) return "this box has no Debian packages";
  const there = installed();
  const missing = packages.filter((name) => !there.has(name));
  return missing.length === 0 ? undefined : `these packages are not installed: ${missing.join(" ")}`;
}

/** A root file system with the files of installed packages and of all they depend on. */
export function packageRoot(dir: string, packages: readonly string[]): string {
  const needed = closure(packages);
  const listed = run("dpkg-query", ["-L", ...needed])
    .split("\n")
    .filter((path) => path.startsWith("/") && path !== "/." && !UNNEEDED.test(`${path}/`))
    .map(merged)
    .filter((path) => existsSync(path));
  for (const folder of ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", "run", "root", "var/tmp"])
    mkdirSync(join(dir, folder), { recursive: true });
  for (const name of MERGED) if (existsSync(`/${name}`)) symlinkSync(`usr/${name}`, join(dir, name));
  const archive = join(dir, ".packages.tar");
  const list = [...new Set(listed)].map((path) => path.slice(1)).join("\0");
  run("tar", ["-C", "/", "--no-recursion", "--null", "-T", "-", "-cf", archive], list);
  run("tar", ["-C", dir, "-xpf", archive]);
  rmSync(archive);
  // Where packages ask for one of several programs, such as awk.
  mkdirSync(join(dir, "etc/alternatives"), { recursive: true });
  run("sh", ["-c", 'cp -a /etc/alternatives/. "$1/etc/alternatives/"', "sh", dir]);
  for (const file of ["passwd", "group"]) run("cp", [`/etc/${file}`, join(dir, "etc", file)]);
  writeFileSync(join(dir, "etc/ld.so.cache"), "");
  run("ldconfig", ["-r", dir]);
  return dir;
}

const merged = (path: string): string => {
  const [, first = ""] = path.split("/");
  return (MERGED as readonly string[]).includes(first) ? `/usr${path}` : path;
};

/** Packages and all that they depend on, as far as it is installed. */
function closure(packages: readonly string[]): string[] {
  const there = installed();
  const found = new Set<string>();
  const ask = [...packages];
  for (let name = ask.pop(); name !== undefined; name = ask.pop()) {
    const depends = there.get(name);
    if (!depends || found.has(name)) continue;
    found.add(name);
    ask.push(...depends);
  }
  return [...found];
}

/** A whole Debian as a tar archive, as mmdebstrap makes it from this box's own package sources; made once. */
export function bootstrapRoot(packages: readonly string[]): string {
  const release = run("sh", ["-c", '. /etc/os-release; printf %s "$VERSION_CODENAME"']);
  const key = createHash("sha256")
    .update(`${release} ${packages.join(" ")}`)
    .digest("hex")
    .slice(0, 12);
  const file = join(tmpdir(), `hangar-debian-${key}.tar`);
  if (existsSync(file)) return file;
  const sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"].filter((path) =>
    existsSync(path),
  );
  const made = `${file}.${process.pid}.tar`;
  const quiet = ["--quiet", '--aptopt=Acquire::Languages "none"'];
  run("mmdebstrap", [
    ...quiet,
    "--variant=apt",
    `--include=${packages.join(",")}`,
    release,
    made,
    ...sources.slice(0, 1),
  ]);
  renameSync(made, file);
  return file;
}
