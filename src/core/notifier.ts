/**
 * How the processes of one platform wake each other. A word is only a reason to look at the store: it may be lost or
 * come twice, and costs a look, never a fact. With PostgreSQL it is LISTEN and NOTIFY; a process that has its database
 * to itself has no wire.
 */
export interface Notifier {
  /** Never throws and never waits; what cannot be sent is lost, and found by those who look now and then. */
  send(channel: NotificationChannel, word: string): void;
  /** Words of the other processes, never our own. Answers the function that ends it. */
  listen(channel: NotificationChannel, listener: (word: string) => void): () => void;
  /** Called when words may have been lost: the connection was gone and is there again. */
  onGap(listener: () => void): () => void;
  close(): Promise<void>;
}

export type NotificationChannel = "machines" | "volumes" | "hosts" | "network" | "doors" | "egress";
