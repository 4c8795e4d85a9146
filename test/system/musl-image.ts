/** A root file system as Alpine's: musl is the only libc, and a program that is linked to it dynamically writes with SQLite. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { busyboxLayer } from "../rootfs.ts";

const SOURCE = join(import.meta.dirname, "../musl-sqlite");
export const MUSL_PROGRAM = "/usr/bin/musl-sqlite";
const APP_DB = "/data/app.db";

/** What the machine runs: it makes its table when it starts. */
export const MUSL_SERVER = [MUSL_PROGRAM, APP_DB] as const;
export const muslQuery = (sql: string): string[] => [MUSL_PROGRAM, APP_DB, sql];

/** The loader, which is the libc as well; Debian's package `musl` has it where Alpine has. */
const loader = (): string => {
  const name = readdirSync("/lib").find((file) => file.startsWith("ld-musl-"));
  return name === undefined ? "" : join("/lib", name);
};

export function muslMissing(): string | undefined {
  if (spawnSync("musl-gcc", ["--version"]).status !== 0 || !existsSync(loader()))
    return "there is no compiler for musl (apt-get install musl-tools)";
  return spawnSync("go", ["version"]).status === 0 ? undefined : "there is no Go toolchain";
}

/** Makes it in a folder; the reason when the program's modules cannot be had. */
export function muslRoot(root: string): string | undefined {
  busyboxLayer(root);
  const program = join(root, MUSL_PROGRAM);
  const env = { ...process.env, CC: "musl-gcc", CGO_ENABLED: "1", GOTOOLCHAIN: "local" };
  const args = ["build", "-ldflags", "-linkmode external", "-o", program, "."];
  const made = spawnSync("go", args, { cwd: SOURCE, env, encoding: "utf8" });
  if (made.status !== 0) return `the program cannot be built here: ${made.stderr.slice(-300)}`;
  assert.ok(readFileSync(program).includes(loader()), "it is linked to musl, dynamically");
  mkdirSync(join(root, "lib"), { recursive: true });
  cpSync(realpathSync(loader()), join(root, loader()));
  return undefined;
}
