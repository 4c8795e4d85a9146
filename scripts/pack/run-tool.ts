import { spawnSync } from "node:child_process";

/** Runs a program to its end and answers what it printed; one that fails ends the packing, with its words. */
export function runTool(name: string, args: readonly string[], how: { cwd?: string } = {}): string {
  const { status, stdout, stderr, error } = spawnSync(name, args, { ...how, encoding: "utf8" });
  if (status !== 0) throw new Error(`${name} ${args[0] ?? ""} failed:\n${error?.message ?? stderr}`);
  return stdout;
}
