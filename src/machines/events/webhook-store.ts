/** Where an organization's events are sent. */
export interface Webhook {
  id: string;
  org_id: string;
  /** Only this app's events; null is all of the organization's. */
  app_id: string | null;
  url: string;
  /** What requests are signed with; sealed. */
  secret: Uint8Array;
  created_at: number;
  /** The token that made it, and with which it falls; null for old ones. */
  token_id: string | null;
  /** The place in the log up to which everything has arrived. */
  position: number;
  /** Tries in a row that failed. */
  failures: number;
  retry_at: number | null;
  last_error: string | null;
}

/** Keeps and finds webhooks; decides nothing. Implemented in stores/, examined by `webhook-store.suite.ts`. */
export interface WebhookStore {
  /** Of one organization, or all of them. */
  webhooks(org_id?: string): Promise<Webhook[]>;
  /** False, and nothing written, when the organization has `limit` already. */
  insertWebhook(webhook: Webhook, limit: number): Promise<boolean>;
  /** False when there is no such webhook. */
  deleteWebhook(org_id: string, id: string): Promise<boolean>;
  /**
   * It is this runner's to send until then, and answers how far it got. Undefined when it is another's, or gone. A claim
   * that ran out is anybody's.
   */
  claim(id: string, claim: { runner: string; now: number; until: number }): Promise<Webhook | undefined>;
  /** How far it got, or why it did not. False when it is gone. */
  putProgress(webhook: Pick<Webhook, "id" | "position" | "failures" | "retry_at" | "last_error">): Promise<boolean>;
}
