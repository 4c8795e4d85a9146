/** The environment of long-running programs, which reduces their memory. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

type Env = Readonly<Record<string, string | undefined>>;

/** Returns freed memory to the system instead of keeping it in many arenas. */
export const MALLOC_ENVIRONMENT = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "32768",
  MALLOC_TRIM_THRESHOLD_: "131072",
} as const;

/**
 * Enables the compile cache, which saves the memory for stripping types: a third of that of a replication node. Values
 * that are set in the environment take precedence.
 */
export function programEnvironment(env: Env): Env {
  const cache = cacheFolder(env);
  return { ...MALLOC_ENVIRONMENT, ...(cache ? { NODE_COMPILE_CACHE: join(cache, "compile") } : {}), ...env };
}

/** V8's background compile threads keep their own memory: 10 MiB of a replication node. */
export const nodeFlags = (file: string): string[] => (file === "replication/main.ts" ? ["--v8-pool-size=1"] : []);

/** A folder that other users cannot write, because its content is executed. The same as in bin/hangar.mjs. */
function cacheFolder({ XDG_CACHE_HOME, HOME }: Env): string | undefined {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  if (existsSync(join(root, "src/cli/main.ts"))) return join(root, "node_modules/.cache");
  if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, "hangar");
  return HOME ? join(HOME, ".cache/hangar") : undefined;
}
