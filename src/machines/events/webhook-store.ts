/** Where an organization's events are sent. */
export interface Webhook {
  id: string;
  org_id: string;
  /** Restricts the webhook to one app; null means all apps of the organization. */
  app_id: string | null;
  url: string;
  /** Key that signs requests, sealed. */
  secret: Uint8Array;
  created_at: number;
  /** The token that created it; the webhook stops when that is revoked. Null for old webhooks. */
  token_id: string | null;
  /** Position in the log up to which all events were delivered. */
  position: number;
  /** Consecutive failed attempts. */
  failures: number;
  retry_at: number | null;
  last_error: string | null;
}

/** Stores webhooks; decides nothing. Implemented in stores/, tested by `webhook-store.suite.ts`. */
export interface WebhookStore {
  /** Webhooks of one organization, or of all. */
  webhooks(org_id?: string): Promise<Webhook[]>;
  /** Returns false, writing nothing, when the organization already has `limit` webhooks. */
  insertWebhook(webhook: Webhook, limit: number): Promise<boolean>;
  /** Returns false when the webhook does not exist. */
  deleteWebhook(org_id: string, id: string): Promise<boolean>;
  /**
   * Claims the webhook for this runner until then and returns its progress. Undefined when another runner holds the
   * claim or the webhook was deleted. An expired claim can be taken by anyone.
   */
  claim(id: string, claim: { runner: string; now: number; until: number }): Promise<Webhook | undefined>;
  /** Stores the delivery position, or the failure. Returns false when the webhook was deleted. */
  putProgress(webhook: Pick<Webhook, "id" | "position" | "failures" | "retry_at" | "last_error">): Promise<boolean>;
}
