/** flyctl as it is published, and its settings for a platform's listener. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { FlyPlatform } from "./fly-listener.ts";
import { tempDir } from "./support.ts";

export const FLYCTL_VERSION = "v0.4.80";

/** The program of `FLYCTL`, or one built from its module; undefined, and the test skipped with the reason, without. */
export function flyctl(t: TestContext): string | undefined {
  if (process.env["FLYCTL"]) return process.env["FLYCTL"];
  const program = join(tempDir(), "flyctl");
  const go = (args: string[]) => spawnSync("go", args, { encoding: "utf8" });
  // Not `go install`, which asks the module proxy for all versions; not every proxy answers that.
  const module = go(["mod", "download", "-json", `github.com/superfly/flyctl@${FLYCTL_VERSION}`]);
  const { Dir } = (module.status === 0 ? JSON.parse(module.stdout) : {}) as { Dir?: string };
  const made = Dir === undefined ? module : go(["build", "-C", Dir, "-o", program, "."]);
  if (Dir !== undefined && made.status === 0) return program;
  t.skip(`flyctl cannot be built here: ${made.error?.message ?? made.stderr.slice(-200)}`);
  return undefined;
}

export const flyctlEnv = ({ fly, token }: FlyPlatform): Record<string, string> => ({
  HOME: tempDir(),
  FLY_API_BASE_URL: fly,
  FLY_FLAPS_BASE_URL: fly,
  FLY_UIEX_BASE_URL: fly,
  FLY_API_TOKEN: token,
  FLY_SEND_METRICS: "0",
  FLY_NO_UPDATE_CHECK: "1",
  FLY_STATUSPAGE_UNRESOLVED_INCIDENTS_URL: fly,
  NO_COLOR: "1",
});
