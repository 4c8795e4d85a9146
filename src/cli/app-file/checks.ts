import type { MachineConfig } from "#client/api.ts";
import { isTable } from "./shape.ts";
import { time } from "./units.ts";

export type Check = NonNullable<MachineConfig["checks"]>[string];

/** Converts a check to the API's form: headers as a list, durations with units. */
export function checkOf(table: Record<string, unknown>, type?: "tcp" | "http"): Check {
  const { processes: _, headers, ...check } = table;
  const pairs = isTable(headers)
    ? Object.entries(headers).map(([name, value]) => ({ name, values: [value].flat().map(String) }))
    : (headers as Check["headers"]);
  const times = ["interval", "timeout", "grace_period"].filter((name) => check[name] !== undefined);
  return {
    ...(type ? { type } : {}),
    ...check,
    // A bare number is milliseconds.
    ...Object.fromEntries(times.map((name) => [name, time(check[name] as string, "ms")])),
    ...(pairs ? { headers: pairs } : {}),
  } as Check;
}
