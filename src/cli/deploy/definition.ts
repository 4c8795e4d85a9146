import type { Group } from "../app-file/groups.ts";
import type { Strategy } from "./plan.ts";

/** The stored definition of a release, enough to repeat it. */
export interface Definition {
  /** As written. */
  image: string;
  /** The resolved digest and the pinned name; older releases have neither. */
  digest?: string;
  reference?: string;
  strategy: Strategy;
  region?: string;
  groups: Group[];
  release_command?: string;
  release_command_timeout?: string;
  wait_timeout?: string;
  max_unavailable?: number;
  /** The egress policy; unchanged when the file has none. */
  egress?: { mode: "all" | "none" | "list"; allow: string[] };
  /** The app's own rules, as a rule file; unchanged when the file has none. */
  alerts?: string;
}
