/** Webhooks that report pushes to an external repository, on GitHub or a Gitea. */
export interface GitWebhook {
  id: string;
  app_id: string;
  /** Where the repository is: what is deployed is fetched from there, whatever an event says. */
  repository: string;
  username: string;
  /** For the repository, sealed; null for a public one. */
  password: Uint8Array | null;
  /** Key of the events' signatures, sealed. */
  secret: Uint8Array;
  /** The token that deploys, sealed. */
  token: Uint8Array;
  token_id: string;
  created_by: string;
  created_at: number;
}

export type DeliveryState = "queued" | "running" | "done" | "failed";

/** One event that came. */
export interface Delivery {
  id: string;
  webhook_id: string;
  /** The process that took it, and deploys. */
  node_id: string;
  /** As its sender names it. */
  delivery: string;
  /** Of its body: the same one again is not deployed again. */
  digest: string;
  event: string;
  branch: string | null;
  action: "push" | "close";
  state: DeliveryState;
  /** What came of it, in words; the end of the deploy's output when it failed. */
  result: string;
  git_commit: string | null;
  received_at: number;
  ended_at: number | null;
}

export type DeliveryChange = Partial<Pick<Delivery, "state" | "result" | "git_commit" | "ended_at">>;

/** Stores webhooks and their deliveries; decides nothing. Implemented in stores/, tested by `webhook-store.suite.ts`. */
export interface GitWebhookStore {
  /** False, writing nothing, when the app has `limit` of them or does not exist. */
  insert(webhook: GitWebhook, limit: number): Promise<boolean>;
  find(id: string): Promise<GitWebhook | undefined>;
  /** Ordered by id. */
  list(app_id: string): Promise<GitWebhook[]>;
  /** False when the app has none with this id. */
  delete(app_id: string, id: string): Promise<boolean>;

  /**
   * Records a delivery. One with the same body is answered as it is, unless it failed: then it is queued again. Of those
   * that have ended the newest `keep` stay. "full" when `open` have not ended.
   */
  receive(delivery: Delivery, most: { open: number; keep: number }): Promise<"new" | "repeated" | "full">;
  change(id: string, change: DeliveryChange): Promise<void>;
  /** The newest first. */
  deliveries(webhook_id: string, limit: number): Promise<Delivery[]>;
  /** Those of a process that have not ended, the oldest first. */
  unfinished(node_id: string): Promise<Delivery[]>;
}
