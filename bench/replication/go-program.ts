/** Programs that others wrote in Go, built by the Go toolchain where there is one, of a pinned version. */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface Source {
  module: string;
  version: string;
  /** The folder of the program in the module. */
  command: string;
}

/**
 * SQLite itself is compiled, which takes two minutes of a core. Past it the program is left out; what was compiled until then
 * is kept for the next run.
 */
const BUILD_MS = 5 * 60_000;
/** Kept from run to run. */
const BUILT = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "hangar", "bench-go");

export type Built = { program: string } | { reason: string };

/** The program, or why there is none. In a module of its own with the version pinned: nothing else is asked of the proxy. */
export async function build({ module, version, command }: Source): Promise<Built> {
  const dir = join(BUILT, `${module.replaceAll("/", "_")}@${version}`);
  const program = join(dir, "program");
  if (existsSync(program)) return { program };
  if (spawnSync("go", ["version"]).status !== 0)
    return { reason: "there is no Go toolchain here (apt-get install golang-go)" };
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "go.mod"), `module bench\n\ngo 1.22\n\nrequire ${module} ${version}\n`);
  const env = { ...process.env, GOPATH: join(BUILT, "path"), GOCACHE: join(BUILT, "cache") };
  const args = ["build", "-mod=mod", "-o", program, `${module}/${command}`];
  return await new Promise((done) => {
    execFile("go", args, { cwd: dir, env, encoding: "utf8", timeout: BUILD_MS }, (error, _stdout, stderr) => {
      const why = error?.killed ? `it took longer than ${BUILD_MS / 60_000} minutes` : stderr.trim().split("\n").at(-1);
      done(error ? { reason: `it could not be built: ${why ?? error.message}` } : { program });
    });
  });
}
