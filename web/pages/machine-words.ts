import { megabytes } from "../parts/format.ts";

/** The size of a machine, from its config. */
export function sizeOf({ config }: { config: Record<string, unknown> }): string {
  const { cpus, memory_mb, cpu_kind } = (config["guest"] ?? {}) as Record<string, unknown>;
  const parts = [
    typeof cpus === "number" ? `${cpus} × ${typeof cpu_kind === "string" ? cpu_kind : "CPU"}` : "",
    typeof memory_mb === "number" ? megabytes(memory_mb) : "",
  ];
  return parts.filter(Boolean).join(", ") || (typeof config["size"] === "string" ? config["size"] : "");
}
