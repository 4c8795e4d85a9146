/**
 * Notifies the other processes of one platform. A notification is only a reason to read the store: a lost or duplicate
 * one costs one read and never correctness. Uses LISTEN and NOTIFY with PostgreSQL; a single process has no notifier.
 */
export interface Notifier {
  /** Never throws and never waits; what cannot be sent is lost, and receivers also poll. */
  send(channel: NotificationChannel, message: string): void;
  /** Notifications of other processes, never of this one. Returns the unsubscribe function. */
  listen(channel: NotificationChannel, listener: (message: string) => void): () => void;
  /** Called after a reconnect, when notifications may have been lost. */
  onGap(listener: () => void): () => void;
  close(): Promise<void>;
}

export type NotificationChannel = "machines" | "volumes" | "hosts" | "network" | "doors" | "egress" | "builds";
