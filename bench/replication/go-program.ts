/** Programs that others wrote in Go, built by the Go toolchain where there is one, of a pinned version. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface Source {
  module: string;
  version: string;
  /** The folder of the program in the module. */
  command: string;
}

/** A module proxy may be slow, and SQLite itself is compiled. */
const BUILD_MS = 30 * 60_000;
/** Kept from run to run: the build takes minutes. */
const BUILT = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "hangar", "bench-go");

/** The program, or why there is none. In a module of its own with the version pinned: nothing else is asked of the proxy. */
export function build({ module, version, command }: Source): { program: string } | { reason: string } {
  const dir = join(BUILT, `${module.replaceAll("/", "_")}@${version}`);
  const program = join(dir, "program");
  if (existsSync(program)) return { program };
  if (spawnSync("go", ["version"]).status !== 0)
    return { reason: "there is no Go toolchain here (apt-get install golang-go)" };
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "go.mod"), `module bench\n\ngo 1.22\n\nrequire ${module} ${version}\n`);
  const env = { ...process.env, GOPATH: join(BUILT, "path"), GOCACHE: join(BUILT, "cache") };
  const args = ["build", "-mod=mod", "-o", program, `${module}/${command}`];
  const { status, stderr } = spawnSync("go", args, { cwd: dir, env, encoding: "utf8", timeout: BUILD_MS });
  if (status === 0) return { program };
  return { reason: `it could not be built: ${stderr.trim().split("\n").at(-1) || "it took too long"}` };
}
