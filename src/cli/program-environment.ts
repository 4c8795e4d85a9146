/** The environment that our long-running programs are started with, so that they take less memory. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

type Env = Readonly<Record<string, string | undefined>>;

/** Freed memory goes back to the system instead of waiting in one of many arenas. */
export const MALLOC_ENVIRONMENT = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "32768",
  MALLOC_TRIM_THRESHOLD_: "131072",
} as const;

/**
 * What is compiled is kept: the memory that stripping types takes, a third of that of a replication node, is then not
 * needed. Whoever sets these otherwise is listened to.
 */
export function programEnvironment(env: Env): Env {
  const cache = cacheFolder(env);
  return { ...MALLOC_ENVIRONMENT, ...(cache ? { NODE_COMPILE_CACHE: join(cache, "compile") } : {}), ...env };
}

/** Threads of V8 that compile in the background keep memory of their own: of a replication node 10 MiB. */
export const nodeFlags = (file: string): string[] => (file === "replication/main.ts" ? ["--v8-pool-size=1"] : []);

/** Where others cannot write: what is in it is run. The same as in bin/hangar.mjs. */
function cacheFolder({ XDG_CACHE_HOME, HOME }: Env): string | undefined {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  if (existsSync(join(root, "src/cli/main.ts"))) return join(root, "node_modules/.cache");
  if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, "hangar");
  return HOME ? join(HOME, ".cache/hangar") : undefined;
}
