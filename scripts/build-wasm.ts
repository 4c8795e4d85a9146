/**
 * Builds the small program that writes numbers (Debian: clang, lld). What it writes is kept in the repository, so that
 * a box that runs Hangar needs no compiler; see docs/adr/0022.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

export const POINTS = join(import.meta.dirname, "../src/metrics/promql/native");

const FLAGS = [
  ..."--target=wasm32 -O3 -Wall -Wextra -Werror -nostdlib -ffreestanding".split(" "),
  "-Wl,--no-entry,--strip-all,--export=__heap_base,--initial-memory=131072,-zstack-size=8192",
];

/** Answers the compiler's words when it could not. */
export function buildPoints(to: string): string | undefined {
  const { status, stderr, error } = spawnSync("clang", [...FLAGS, "-o", to, join(POINTS, "points.c")], {
    encoding: "utf8",
  });
  return status === 0 ? undefined : (error?.message ?? stderr);
}

if (process.argv[1] === import.meta.filename) {
  const problem = buildPoints(join(POINTS, "points.wasm"));
  if (problem) throw new Error(problem);
}
