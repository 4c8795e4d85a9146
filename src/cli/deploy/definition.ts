import type { Group } from "../app-file/groups.ts";
import type { Strategy } from "./plan.ts";

/** All that a release needs to be done again: what is kept of it. */
export interface Definition {
  /** As it was named. */
  image: string;
  /** What the name stood for, and the name pinned to it; releases of older versions have neither. */
  digest?: string;
  reference?: string;
  strategy: Strategy;
  region?: string;
  groups: Group[];
  release_command?: string;
  release_command_timeout?: string;
  wait_timeout?: string;
  max_unavailable?: number;
  /** What machines may reach; as it is when the file does not say. */
  egress?: { mode: "all" | "none" | "list"; allow: string[] };
}
