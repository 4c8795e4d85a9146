import type { MachineState } from "#machines/lifecycle/states.ts";

/** What a sprite is created with. */
export interface SpriteSettings {
  image: string;
  cpus: number;
  memory_mb: number;
  storage_gb: number;
  region: string | null;
  environment: Record<string, string>;
}

export type UrlAuth = "sprite" | "public";

/** A sprite as stored. Its labels are in its machine's metadata, where connectors look. */
export interface Sprite {
  id: string;
  org_id: string;
  app_id: string;
  name: string;
  machine_id: string;
  /** `creating` until its machine is stored; `deleting` until nothing of it is left. */
  state: "creating" | "ready" | "deleting";
  settings: SpriteSettings;
  /** Labels that its machine begins with. */
  first_labels: readonly string[];
  url_auth: UrlAuth;
  /** Who may open a private URL: all of the organization, or its administrators. */
  private_access: "org_users" | "admins" | null;
  created_at: number;
  updated_at: number;
}

/** A sprite with what is known of its machine; null before the machine exists. */
export interface SpriteView extends Sprite {
  app_name: string;
  machine_state: MachineState | null;
  labels: readonly string[];
  started_at: number | null;
  machine_updated_at: number | null;
}

export const STATUSES = ["running", "warm", "cold"] as const;
/** `running` computes, `warm` sleeps with its memory, `cold` sleeps without. */
export type Status = (typeof STATUSES)[number];

const STATUS: Partial<Record<MachineState, Status>> = {
  started: "running",
  suspending: "running",
  stopping: "running",
  suspended: "warm",
};

export const statusOf = (state: MachineState | null): Status => (state && STATUS[state]) ?? "cold";
