/** Which process is the platform of a data dir. */
import { existsSync, readFileSync } from "node:fs";

/** Its pid, or undefined when none runs. */
export function runningPlatform(data_dir: string): number | undefined {
  const file = `${data_dir}/pid`;
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  return pid && isPlatform(pid) ? pid : undefined;
}

/** A number that is in the file may be another program's by now. */
export function isPlatform(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const words = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "main.ts";
    return words.includes("main.ts");
  } catch {
    return false;
  }
}
