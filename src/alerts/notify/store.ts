import type { AlertClaim } from "../store.ts";
import type { GroupState } from "./dispatch.ts";
import type { Notification, Silence } from "./types.ts";

/** Routes and receivers of an organization; they hold passwords, so they are encrypted. */
export interface StoredConfig {
  org_id: string;
  content: Uint8Array;
  /** The token that set it; null for one set by the platform. */
  token_id: string | null;
  updated_at: number;
}

/** Stores what notifications need; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface NotificationStore {
  config(org_id: string): Promise<StoredConfig | undefined>;
  /** Returns false when there is no such organization. */
  putConfig(config: StoredConfig): Promise<boolean>;
  deleteConfig(org_id: string): Promise<boolean>;

  /** Those that have not ended before `since`, newest first. */
  silences(org_id: string, since: number): Promise<Silence[]>;
  /** Returns false when the organization has `limit` others that have not ended. */
  putSilence(silence: Silence, limit: number, now: number): Promise<boolean>;
  /** Ends it. Returns false when there is none that still lasts. */
  expireSilence(org_id: string, id: string, now: number): Promise<boolean>;

  groups(org_id: string): Promise<GroupState[]>;
  /** Notifications and the groups they come from, together. False, writing nothing, without the claim. */
  putGroups(
    org_id: string,
    changes: { groups: readonly GroupState[]; removed: readonly string[]; notifications: readonly Notification[] },
    claim: AlertClaim,
  ): Promise<boolean>;
  /** Notifications that are neither delivered nor failed, oldest first. */
  pending(org_id: string, limit: number): Promise<Notification[]>;
  /** Newest first. */
  notifications(org_id: string, limit: number): Promise<Notification[]>;
  putDelivery(
    delivery: Pick<Notification, "id" | "attempts" | "retry_at" | "last_error" | "delivered_at">,
  ): Promise<void>;
  /** Deletes what was created, and silences that ended, before that time. */
  forget(before: number): Promise<void>;
}
