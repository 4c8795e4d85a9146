/** The program inside a machine that runs commands and terminals in a folder of it: native/terminal.c. */
import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { nativeProgram } from "./native-programs.ts";

const HELPER = nativeProgram("terminal");
export const HELPER_PATH = "/.svc/terminal";

/** A machine may have been started before the helper existed, or with another version that is in use. */
export function bringHelper(svc: string): void {
  const file = join(svc, "terminal");
  if (existsSync(file) && readFileSync(file).equals(readFileSync(HELPER))) return;
  const fresh = `${file}-${randomUUID()}`;
  copyFileSync(HELPER, fresh);
  renameSync(fresh, file);
}
