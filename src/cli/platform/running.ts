/** Finds the platform process of a data dir, and the command that starts one. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../project-root.ts";
import { SERVICE } from "./service-unit.ts";

/** Its pid, or undefined when none runs. */
export function runningPlatform(data_dir: string): number | undefined {
  const file = `${data_dir}/pid`;
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  return pid && isPlatform(pid) ? pid : undefined;
}

/** The pid in the file may have been reused by another program. */
export function isPlatform(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const cmdline = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "main.ts";
    return cmdline.includes("main.ts");
  } catch {
    return false;
  }
}

/** The command that starts the platform as it is installed here: a service, a checkout, or a package. */
export function startCommand(): string {
  if ([SERVICE.unit_file, SERVICE.packaged_unit_file].some((file) => existsSync(file))) return "systemctl start hangar";
  return existsSync(join(projectRoot(), "scripts/bootstrap.mjs")) ? "npm start" : "hangar up";
}
