/** A place that runs machines. Several may be declared on one box, so that placement can be used and tried. */
export interface Host {
  /** Four hex digits. */
  id: string;
  region: string;
  zone: string;
  /** What machines may take altogether; 0 is no bound. */
  cpus: number;
  memory_mb: number;
  /** `failed`: nothing can be done there; its machines are marked unreachable. */
  state: "ok" | "failed";
  used_cpus: number;
  used_memory_mb: number;
}
