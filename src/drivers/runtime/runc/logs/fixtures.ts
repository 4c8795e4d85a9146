/** Logs as monitors write them, of machines that have none. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "../../../../../test/support.ts";
import { type Layout, layoutOf, pathsOf } from "../layout.ts";
import { stampOf } from "./parse.ts";

export const AT = Date.UTC(2026, 0, 1);

export const logLine = (ms: number, message: string, stream = "stdout", kind = "F"): string =>
  `${stampOf(ms)} ${stream} ${kind} ${message}\n`;

/** Paths of a host whose machines have run dirs and log folders, but no processes. */
export function logHost() {
  const data = tempDir("hangar-logs");
  const layout: Layout = { ...layoutOf(data, "0000"), containers: join(data, "m"), logs: join(data, "logs") };
  const machine = (id: string) => {
    const paths = pathsOf(layout, id);
    for (const dir of [paths.logs, paths.run]) mkdirSync(dir, { recursive: true });
    return paths;
  };
  return { layout, machine };
}
