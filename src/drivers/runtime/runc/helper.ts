/** Our programs inside a machine: to run commands and terminals, work on files, and reach ports. */
import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { nativeProgram } from "./native-programs.ts";

const HELPERS = ["terminal", "files", "dial"];
export const HELPER_PATH = "/.svc/terminal";

/** A machine may have been started before the helpers existed, or with other versions that are in use. */
export function bringHelpers(svc: string): void {
  for (const name of HELPERS) {
    const [ours, file] = [nativeProgram(name), join(svc, name)];
    if (existsSync(file) && readFileSync(file).equals(readFileSync(ours))) continue;
    const fresh = `${file}-${randomUUID()}`;
    copyFileSync(ours, fresh);
    renameSync(fresh, file);
  }
}
