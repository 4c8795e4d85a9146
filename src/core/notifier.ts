/**
 * How the processes of one platform wake each other. A word is only a reason to look at the store: it may be lost or
 * come twice, and costs a look, never a fact. With PostgreSQL it is LISTEN and NOTIFY; a process that has its database
 * to itself has no wire.
 */
export interface Notifier {
  /** Never throws and never waits; what cannot be sent is lost, and receivers also poll. */
  send(channel: NotificationChannel, message: string): void;
  /** Notifications of other processes, never our own. Returns the unsubscribe function. */
  listen(channel: NotificationChannel, listener: (message: string) => void): () => void;
  /** Called after a reconnect, when notifications may have been lost. */
  onGap(listener: () => void): () => void;
  close(): Promise<void>;
}

export type NotificationChannel = "machines" | "volumes" | "hosts" | "network" | "doors" | "egress" | "builds";
