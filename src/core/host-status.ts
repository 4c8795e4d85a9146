/** What a process that only runs machines says of itself to `hangar doctor` on its box: it has no API. */

/** Files of its data dir. */
export const HOST_FILES = {
  /** A `HostPlace` as JSON, written at every start. */
  place: "host",
  /** Answers each connection with a `HostStatus` as JSON. */
  socket: "host.sock",
} as const;

export interface HostPlace {
  id: string;
  region: string;
  zone: string;
}

export interface HostStatus {
  pid: number;
  version: string;
  driver: string;
  /** URL of the API; empty when no control process was ever started. */
  api: string;
  /** `host:port` at which other processes reach it; empty when they do not. */
  address: string;
  network: "off" | "vxlan" | "wireguard";
  /** Whether volumes and images are kept in an object store. */
  has_objects: boolean;
  ready: readonly string[];
  missing: readonly { part: string; reason: string }[];
}
